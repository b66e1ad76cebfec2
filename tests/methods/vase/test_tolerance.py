"""The noise that latents tolerate: the minimum by hand, and no bound for an unused latent."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from everlearn.methods.vase.tolerance import find_tolerance


def test_tolerated_noise_minimises_error_less_its_log() -> None:
    """At p = 1/2 noise costs s^2 / 2 times the sum of w^2 / 4 over pixels, and gains log s."""
    weights = torch.tensor([0.5, 1.0, 2.0])
    z = torch.zeros(256, 3)

    def decode(codes: Tensor) -> Tensor:
        return (codes * weights)[:, :, None, None].expand(-1, -1, 20, 20)

    images = decode(z).sigmoid()
    found = find_tolerance(images, z, decode, torch.Generator().manual_seed(0))
    expected = 1 / (400 * weights.square() / 4).sqrt()
    assert found.tolist() == pytest.approx(expected.tolist(), rel=0.1)


def test_an_unused_latent_tolerates_any_noise() -> None:
    z = torch.zeros(64, 2)

    def decode(codes: Tensor) -> Tensor:
        return (codes * torch.tensor([3.0, 0.0]))[:, :1, None, None].expand(-1, -1, 8, 8)

    found = find_tolerance(decode(z).sigmoid(), z, decode, torch.Generator().manual_seed(0))
    assert found[0] < 0.2
    assert found[1] > 50
