"""Which latents a decoder uses: the largest noise that each of them bears (appendix A.3 of VASE).

sigma' = arg min over Sigma of E[-log p(x | z + eps, s)] - log |Sigma|,  eps ~ N(0, Sigma), Sigma diagonal
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.optim import Adam

from everlearn.nets.divergence import bernoulli_error

_IMAGES, _STEPS, _RATE = 128, 100, 0.1
_MOST = 4.0  # a latent that is not used bears any noise: looking on has no end


@torch.enable_grad()
def find_tolerance(
    images: Tensor, z: Tensor, draw: Callable[[Tensor], Tensor], source: torch.Generator
) -> Tensor:
    """The standard deviation of the noise that each latent bears, (z,).

    Args:
        z: codes of the images, (B, z).
        draw: logits of codes; slopes go through it.
    """
    images, z = images[:_IMAGES], z[:_IMAGES].detach()
    logs = torch.full_like(z[0], -1.0).requires_grad_()
    optimizer = Adam([logs], _RATE)
    for _ in range(_STEPS):
        noise = torch.randn(z.shape, generator=source, device=z.device)
        error = bernoulli_error(images, draw(z + noise * logs.exp())).mean()
        (slope,) = torch.autograd.grad(error - logs.sum(), [logs])
        logs.grad = slope
        optimizer.step()
        logs.data.clamp_(max=_MOST)
    return logs.detach().exp()
