"""Divergences of codes and images: zero between equals, and equal to those of torch.distributions."""

from __future__ import annotations

import pytest
import torch
from torch.distributions import Bernoulli, Normal, kl_divergence

from everlearn.losses.divergences import (
    bernoulli_entropy,
    bernoulli_kl,
    bernoulli_nll,
    kl_per_latent,
    squared_wasserstein,
)


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def gradients(distance, *leaves):
    """Gradients of a sum of distances, by each argument."""
    return torch.autograd.grad(distance.sum(), leaves)


def test_kl_per_latent_equals_torch_distributions():
    mean, log_variance = normal(5, 3), normal(5, 3, seed=1)
    expected = kl_divergence(Normal(mean, (log_variance / 2).exp()), Normal(0.0, 1.0))
    torch.testing.assert_close(kl_per_latent(mean, log_variance), expected)
    assert not kl_per_latent(torch.zeros(2, 3), torch.zeros(2, 3)).any()


def test_equal_codes_have_no_distance_and_no_gradient():
    code = normal(6, 4).requires_grad_(), normal(6, 4, seed=1).requires_grad_()
    found = squared_wasserstein(*code, code[0].detach(), code[1].detach())
    assert torch.equal(found, torch.zeros(6))
    assert not any(gradient.any() for gradient in gradients(found, *code))


def test_equal_logits_have_no_divergence_and_no_gradient():
    logits = (3 * normal(6, 1, 4, 4)).requires_grad_()
    found = bernoulli_kl(logits.detach(), logits)
    assert torch.equal(found, torch.zeros(6))
    assert gradients(found, logits)[0].abs().max() < 1e-6


def test_bernoulli_kl_equals_torch_distributions_summed_over_pixels():
    first, second = 3 * normal(6, 2, 4, 4), 3 * normal(6, 2, 4, 4, seed=1)
    expected = kl_divergence(Bernoulli(logits=first), Bernoulli(logits=second)).sum((1, 2, 3))
    torch.testing.assert_close(bernoulli_kl(first, second), expected)
    assert (bernoulli_kl(second, first) - expected).abs().min() > 0.1  # it is not symmetric


def test_bernoulli_kl_is_finite_for_extreme_logits():
    extreme = torch.tensor([[-200.0, 200.0]])
    assert bernoulli_kl(extreme, -extreme).item() == pytest.approx(400)
    assert bernoulli_kl(extreme, extreme).item() == 0


def test_the_wasserstein_distance_is_that_of_the_optimal_transport():
    """Sorted samples are the optimal transport between two distributions in one dimension."""
    mean, other = torch.tensor([0.5, -1.0]), torch.tensor([-0.5, 0.0])
    deviation, wide = torch.tensor([1.0, 0.5]), torch.tensor([2.0, 1.5])
    found = squared_wasserstein(
        mean[None], 2 * deviation.log()[None], other[None], 2 * wide.log()[None]
    )
    assert found.item() == pytest.approx(1 + 1 + 1 + 1)
    share = (torch.arange(100_000) + 0.5) / 100_000
    ones = Normal(mean, deviation).icdf(share[:, None])
    twos = Normal(other, wide).icdf(share[:, None])
    assert (ones - twos).square().mean(0).sum().item() == pytest.approx(4, rel=1e-3)


def test_bernoulli_nll_is_the_negative_log_likelihood_summed_over_pixels():
    images, logits = normal(4, 1, 3, 3).sigmoid(), normal(4, 1, 3, 3, seed=1)
    p = logits.sigmoid()
    expected = -(images * p.log() + (1 - images) * (1 - p).log()).sum((1, 2, 3))
    torch.testing.assert_close(bernoulli_nll(images, logits), expected)
    black = Bernoulli(logits=logits).log_prob((images > 0.5).float()).sum((1, 2, 3))
    torch.testing.assert_close(bernoulli_nll((images > 0.5).float(), logits), -black)


def test_the_entropy_is_the_least_nll_and_reached_by_the_true_probabilities():
    images = torch.rand(5, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(bernoulli_nll(images, images.logit()), bernoulli_entropy(images))
    assert (bernoulli_nll(images, normal(5, 1, 4, 4)) > bernoulli_entropy(images)).all()
    expected = Bernoulli(probs=images).entropy().sum((1, 2, 3))
    torch.testing.assert_close(bernoulli_entropy(images), expected)
    assert not bernoulli_entropy((images > 0.5).float()).any()
