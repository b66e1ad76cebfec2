"""Atypicality of latents, masks with hysteresis, and noise in masked latents."""

from __future__ import annotations

import pytest
import torch
from torch.distributions import Normal, kl_divergence

from everlearn.methods.vase.atypicality import apply_mask, atypicality, hysteresis, keep_one


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def test_a_collapsed_latent_has_atypicality_zero():
    found = atypicality(torch.zeros(64, 3), torch.zeros(64, 3))
    torch.testing.assert_close(found, torch.zeros(3), atol=1e-6, rtol=0)


def test_atypicality_of_samples_is_the_kl_of_their_distribution():
    m, v = torch.tensor([0.0, 1.0, -2.0, 0.5]), torch.tensor([4.0, 1.0, 0.1, 0.25])
    z = m + v.sqrt() * normal(100_000, 4)
    expected = 0.5 * (m.square() + v - 1 - v.log())
    found = atypicality(z, torch.full_like(z, -30.0))  # codes without variance
    torch.testing.assert_close(found, expected, rtol=0.02, atol=0)
    torch.testing.assert_close(expected, kl_divergence(Normal(m, v.sqrt()), Normal(0.0, 1.0)))


def test_the_variance_is_within_codes_and_between_them():
    """Means -1 and 1, variances 0.5 and 1.5: the mixture has mean 0 and variance 1 + 1."""
    mean, variance = torch.tensor([[-1.0], [1.0]]), torch.tensor([[0.5], [1.5]])
    expected = 0.5 * (0 + 2 - 1 - torch.tensor(2.0).log())
    assert atypicality(mean, variance.log()).item() == pytest.approx(expected.item())


def test_informative_codes_that_match_the_prior_are_typical():
    mean = 0.99**0.5 * normal(10_000, 5)
    assert (atypicality(mean, torch.full_like(mean, 0.01).log()) < 0.01).all()


def test_masks_have_hysteresis():
    alpha = torch.tensor([0.1, 0.1, 0.6, 0.6, 0.9, 0.9])
    before = torch.tensor([0.0, 1.0, 0.0, 1.0, 0.0, 1.0])
    expected = torch.tensor([1.0, 1.0, 0.0, 1.0, 0.0, 0.0])
    assert torch.equal(hysteresis(before, alpha, 0.5, 0.8), expected)
    assert torch.equal(hysteresis(expected, alpha, 0.5, 0.8), expected)


def test_hysteresis_leaves_one_latent():
    found = hysteresis(torch.ones(3), torch.tensor([2.0, 1.0, 3.0]), 0.5, 0.8)
    assert found.tolist() == [0, 1, 0]


def test_one_latent_is_unmasked_only_where_all_are_masked():
    alpha = torch.tensor([0.9, 0.7, 0.8])
    assert keep_one(torch.zeros(3), alpha).tolist() == [0, 1, 0]
    for mask in (torch.tensor([1.0, 0.0, 0.0]), torch.ones(3)):
        assert torch.equal(keep_one(mask, alpha), mask)


def test_masked_latents_are_noise_and_the_others_codes():
    z, noise, mask = normal(5, 3), normal(5, 3, seed=1), torch.tensor([1.0, 0.0, 1.0])
    found = apply_mask(z, mask, noise)
    assert torch.equal(found[:, [0, 2]], z[:, [0, 2]])
    assert torch.equal(found[:, 1], noise[:, 1])


def test_each_code_may_have_its_own_mask():
    z, noise = torch.ones(2, 2), -torch.ones(2, 2)
    assert apply_mask(z, torch.eye(2), noise).tolist() == [[1, -1], [-1, 1]]


def test_masked_latents_have_no_gradients():
    z = normal(4, 2).requires_grad_()
    apply_mask(z, torch.tensor([0.0, 1.0]), normal(4, 2, seed=1)).square().sum().backward()
    assert not z.grad[:, 0].any()
    assert z.grad[:, 1].all()
