"""The noise that latents bear: what the minimum is by hand, and no end for a latent that draws nothing."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from everlearn.methods.vase.tolerance import find_tolerance


def test_noise_is_borne_until_its_error_outweighs_its_size() -> None:
    """At p = 1/2 noise costs s^2 / 2 times the sum of w^2 / 4 over pixels, and log s is gained."""
    weights = torch.tensor([0.5, 1.0, 2.0])
    z = torch.zeros(256, 3)

    def draw(codes: Tensor) -> Tensor:
        return (codes * weights)[:, :, None, None].expand(-1, -1, 20, 20)

    images = draw(z).sigmoid()
    found = find_tolerance(images, z, draw, torch.Generator().manual_seed(0))
    expected = 1 / (400 * weights.square() / 4).sqrt()
    assert found.tolist() == pytest.approx(expected.tolist(), rel=0.1)


def test_a_latent_that_draws_nothing_bears_any_noise() -> None:
    z = torch.zeros(64, 2)

    def draw(codes: Tensor) -> Tensor:
        return (codes * torch.tensor([3.0, 0.0]))[:, :1, None, None].expand(-1, -1, 8, 8)

    found = find_tolerance(draw(z).sigmoid(), z, draw, torch.Generator().manual_seed(0))
    assert found[0] < 0.2
    assert found[1] > 50
