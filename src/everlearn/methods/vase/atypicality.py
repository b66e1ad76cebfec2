"""Atypicality of latents over a batch, and the masks that follow from it (eqs. 4 and 5 of VASE)."""

from __future__ import annotations

import torch
from torch import Tensor


def atypicality(mean: Tensor, log_variance: Tensor) -> Tensor:
    """Return alpha_n = KL(Gaussian fitted to the codes of a batch || N(0, 1)) of each latent, (N,)."""
    return kl_to_prior(*marginal(mean, log_variance))


def marginal(mean: Tensor, log_variance: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and variance of the codes of a batch, (N,) each.

    The variance is that within the codes plus that of their means: without the latter every informative
    latent would look atypical.
    """
    return mean.mean(0), log_variance.exp().mean(0) + mean.var(0, correction=0)


def kl_to_prior(mean: Tensor, variance: Tensor) -> Tensor:
    """Return KL(N(mean, variance) || N(0, 1)) of each latent (eq. 4)."""
    return 0.5 * (mean.square() + variance - 1 - variance.log())


def hysteresis(mask: Tensor, alpha: Tensor, low: float, high: float) -> Tensor:
    """Return the mask of a batch: 0 above `high`, 1 below `low`, else as before; never all 0."""
    return keep_one(torch.where(alpha > high, 0.0, torch.where(alpha < low, 1.0, mask)), alpha)


def keep_one(mask: Tensor, alpha: Tensor) -> Tensor:
    """Return the mask, or the least atypical latent alone where every latent is masked."""
    lowest = torch.arange(len(alpha), device=alpha.device) == alpha.argmin()
    return torch.where(mask.any(), mask, lowest.to(mask.dtype))


def apply_mask(z: Tensor, mask: Tensor, noise: Tensor) -> Tensor:
    """Return z^s = a z + (1 - a) eps: codes with noise in place of masked latents."""
    return mask * z + (1 - mask) * noise
