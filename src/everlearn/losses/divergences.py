"""Divergences of codes from the prior, of images from reconstructions, and of two nets from one another.

All are in nats (except `squared_wasserstein`), summed over latents or pixels, one value per row.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, softplus


def kl_per_latent(mean: Tensor, log_variance: Tensor) -> Tensor:
    """KL(N(mean, variance) || N(0, 1)) of every latent, (B, N)."""
    return 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance)


def bernoulli_nll(images: Tensor, logits: Tensor) -> Tensor:
    """-log p(x) of images in [0, 1] under Bernoulli distributions with these logits, (B,)."""
    per_pixel = binary_cross_entropy_with_logits(logits, images, reduction="none")
    return per_pixel.flatten(1).sum(1)


def bernoulli_entropy(images: Tensor) -> Tensor:
    """The least `bernoulli_nll` of images in [0, 1], (B,): 0 for black and white, more for grey."""
    per_pixel: Tensor = torch.special.entr(images) + torch.special.entr(1 - images)
    return per_pixel.flatten(1).sum(1)


def bernoulli_kl(first: Tensor, second: Tensor) -> Tensor:
    """KL between Bernoulli distributions with these logits, (B,)."""
    per_pixel = first.sigmoid() * (first - second) + softplus(second) - softplus(first)
    return per_pixel.flatten(1).sum(1)


def squared_wasserstein(
    mean: Tensor, log_variance: Tensor, other_mean: Tensor, other_log_variance: Tensor
) -> Tensor:
    """The squared Wasserstein-2 distance of diagonal Gaussians, (B,)."""
    means = (mean - other_mean).square()
    deviations = ((0.5 * log_variance).exp() - (0.5 * other_log_variance).exp()).square()
    return (means + deviations).sum(1)
