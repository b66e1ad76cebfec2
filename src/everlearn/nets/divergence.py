"""How far codes are from the prior, images from what was drawn, and two nets from one another.

All in nats (but for `wasserstein`), summed over numbers or pixels, one figure a row.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, softplus


def kl_each(mean: Tensor, log_variance: Tensor) -> Tensor:
    """KL(N(mean, variance) || N(0, 1)) of every number of a code, (B, N)."""
    return 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance)


def bernoulli_error(images: Tensor, logits: Tensor) -> Tensor:
    """-log p(x) of images in [0, 1] under Bernoullis with these logits, (B,)."""
    each = binary_cross_entropy_with_logits(logits, images, reduction="none")
    return each.flatten(1).sum(1)


def entropy(images: Tensor) -> Tensor:
    """The least error that images in [0, 1] can have, (B,): 0 for black and white, more for grey."""
    each: Tensor = torch.special.entr(images) + torch.special.entr(1 - images)
    return each.flatten(1).sum(1)


def bernoulli_kl(first: Tensor, second: Tensor) -> Tensor:
    """KL between Bernoullis with these logits, (B,)."""
    each = first.sigmoid() * (first - second) + softplus(second) - softplus(first)
    return each.flatten(1).sum(1)


def wasserstein(
    mean: Tensor, log_variance: Tensor, other_mean: Tensor, other_log_variance: Tensor
) -> Tensor:
    """The squared Wasserstein-2 distance of diagonal Gaussians, (B,)."""
    apart = (mean - other_mean).square()
    wider = ((0.5 * log_variance).exp() - (0.5 * other_log_variance).exp()).square()
    return (apart + wider).sum(1)
