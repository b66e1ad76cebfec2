"""The largest noise that a decoder tolerates in each latent (appendix A.3 of VASE).

sigma' = arg min over Sigma of E[-log p(x | z + eps, s)] - log |Sigma|,  eps ~ N(0, Sigma), Sigma diagonal
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.optim import Adam

from everlearn.losses.divergences import bernoulli_nll

_IMAGES = 128
_STEPS = 100
_LEARNING_RATE = 0.1
_MAX_LOG = 4.0  # an unused latent tolerates any noise: without a bound its sigma would grow forever


@torch.enable_grad()
def find_tolerance(
    images: Tensor, z: Tensor, decode: Callable[[Tensor], Tensor], generator: torch.Generator
) -> Tensor:
    """Return the standard deviation of the noise that each latent tolerates, (latent_dim,).

    Args:
        z: codes of the images, (B, latent_dim).
        decode: maps codes to the logits of images; must be differentiable.
    """
    images = images[:_IMAGES]
    z = z[:_IMAGES].detach()
    log_sigma = torch.full_like(z[0], -1.0).requires_grad_()
    optimizer = Adam([log_sigma], _LEARNING_RATE)
    for _ in range(_STEPS):
        noise = torch.randn(z.shape, generator=generator, device=z.device)
        error = bernoulli_nll(images, decode(z + noise * log_sigma.exp())).mean()
        (gradient,) = torch.autograd.grad(error - log_sigma.sum(), [log_sigma])
        log_sigma.grad = gradient
        optimizer.step()
        log_sigma.data.clamp_(max=_MAX_LOG)
    return log_sigma.detach().exp()
