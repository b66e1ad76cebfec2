"""Distances of codes and of images drawn: nothing between equals, and what torch's distributions say."""

from __future__ import annotations

import pytest
import torch
from torch.distributions import Bernoulli, Normal, kl_divergence

from everlearn.nets.divergence import bernoulli_error, bernoulli_kl, entropy, kl_each, wasserstein


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def slopes(distance, *moving):
    """Slopes of a sum of distances, by each argument."""
    return torch.autograd.grad(distance.sum(), moving)


def test_kl_of_each_number_is_that_of_distributions():
    mean, log_variance = normal(5, 3), normal(5, 3, seed=1)
    expected = kl_divergence(Normal(mean, (log_variance / 2).exp()), Normal(0.0, 1.0))
    torch.testing.assert_close(kl_each(mean, log_variance), expected)
    assert not kl_each(torch.zeros(2, 3), torch.zeros(2, 3)).any()


def test_v4_equal_codes_are_no_distance_apart_and_nothing_moves_them():
    code = normal(6, 4).requires_grad_(), normal(6, 4, seed=1).requires_grad_()
    found = wasserstein(*code, code[0].detach(), code[1].detach())
    assert torch.equal(found, torch.zeros(6))
    assert not any(slope.any() for slope in slopes(found, *code))


def test_v4_equal_logits_are_no_distance_apart_and_nothing_moves_them():
    logits = (3 * normal(6, 1, 4, 4)).requires_grad_()
    found = bernoulli_kl(logits.detach(), logits)
    assert torch.equal(found, torch.zeros(6))
    assert slopes(found, logits)[0].abs().max() < 1e-6


def test_v4_the_distance_of_logits_is_the_kl_of_distributions_summed_over_pixels():
    first, second = 3 * normal(6, 2, 4, 4), 3 * normal(6, 2, 4, 4, seed=1)
    expected = kl_divergence(Bernoulli(logits=first), Bernoulli(logits=second)).sum((1, 2, 3))
    torch.testing.assert_close(bernoulli_kl(first, second), expected)
    assert (bernoulli_kl(second, first) - expected).abs().min() > 0.1  # it has a direction


def test_the_distance_of_logits_stays_finite_where_pixels_are_black_or_white():
    extreme = torch.tensor([[-200.0, 200.0]])
    assert bernoulli_kl(extreme, -extreme).item() == pytest.approx(400)
    assert bernoulli_kl(extreme, extreme).item() == 0


def test_v4_the_distance_of_codes_is_that_of_the_best_transport():
    """Sorted samples are the best transport between two distributions of one number."""
    mean, other = torch.tensor([0.5, -1.0]), torch.tensor([-0.5, 0.0])
    deviation, wide = torch.tensor([1.0, 0.5]), torch.tensor([2.0, 1.5])
    found = wasserstein(mean[None], 2 * deviation.log()[None], other[None], 2 * wide.log()[None])
    assert found.item() == pytest.approx(1 + 1 + 1 + 1)
    share = (torch.arange(100_000) + 0.5) / 100_000
    ones = Normal(mean, deviation).icdf(share[:, None])
    twos = Normal(other, wide).icdf(share[:, None])
    assert (ones - twos).square().mean(0).sum().item() == pytest.approx(4, rel=1e-3)


def test_the_error_is_the_likelihood_summed_over_pixels():
    images, logits = normal(4, 1, 3, 3).sigmoid(), normal(4, 1, 3, 3, seed=1)
    p = logits.sigmoid()
    expected = -(images * p.log() + (1 - images) * (1 - p).log()).sum((1, 2, 3))
    torch.testing.assert_close(bernoulli_error(images, logits), expected)
    black = Bernoulli(logits=logits).log_prob((images > 0.5).float()).sum((1, 2, 3))
    torch.testing.assert_close(bernoulli_error((images > 0.5).float(), logits), -black)


def test_no_error_is_below_the_entropy_which_is_that_of_the_truth():
    images = torch.rand(5, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(bernoulli_error(images, images.logit()), entropy(images))
    assert (bernoulli_error(images, normal(5, 1, 4, 4)) > entropy(images)).all()
    expected = Bernoulli(probs=images).entropy().sum((1, 2, 3))
    torch.testing.assert_close(entropy(images), expected)
    assert not entropy((images > 0.5).float()).any()
