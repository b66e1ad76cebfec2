"""How unusual each number of a code is over a batch, and which numbers apply (eqs. 4 and 5 of VASE)."""

from __future__ import annotations

import torch
from torch import Tensor


def atypicality(mean: Tensor, log_variance: Tensor) -> Tensor:
    """KL(a Gaussian fitted to the codes of a batch || N(0, 1)) of each number, (N,)."""
    return farness(*marginal(mean, log_variance))


def marginal(mean: Tensor, log_variance: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance of the codes of a batch, (N,) each.

    The variance is that within each code and that of their means: without the latter every number that says
    something would look unusual.
    """
    return mean.mean(0), log_variance.exp().mean(0) + mean.var(0, correction=0)


def farness(centre: Tensor, variance: Tensor) -> Tensor:
    """KL(N(centre, variance) || N(0, 1)) of each number."""
    return 0.5 * (centre.square() + variance - 1 - variance.log())


def hysteresis(mask: Tensor, alpha: Tensor, low: float, high: float) -> Tensor:
    """Masks with memory: 0 over `high`, 1 below `low`, else as before; one at least stays."""
    return keep_one(torch.where(alpha > high, 0.0, torch.where(alpha < low, 1.0, mask)), alpha)


def keep_one(mask: Tensor, alpha: Tensor) -> Tensor:
    """The mask, with its least unusual number where it would leave none."""
    least = torch.arange(len(alpha), device=alpha.device) == alpha.argmin()
    return torch.where(mask.any(), mask, least.to(mask.dtype))


def blend(z: Tensor, mask: Tensor, noise: Tensor) -> Tensor:
    """Codes whose masked numbers are noise: z^s = a z + (1 - a) eps."""
    return mask * z + (1 - mask) * noise
