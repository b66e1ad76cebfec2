"""Imagination-driven exploration: vary images in ways learned elsewhere (our reading of appendix A.4).

Some latents do not apply in a new environment: for digits that stand still, those of position. Drawn at
random, they put the digits in positions where none has been seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from everlearn.methods.vase.environment_state import select_row

if TYPE_CHECKING:
    from everlearn.methods.vase.vase import VASE


def free_latents(learner: VASE, environment: Tensor) -> Tensor:
    """Return which latents are used in another environment and masked in this one (), (N,)."""
    masked = select_row(learner.environments.state.masks, environment) == 0
    return _used_elsewhere(learner, environment).any(0) & masked


@torch.no_grad()
def explore(learner: VASE, images: Tensor, noise: Tensor) -> Tensor:
    """Return codes of images of one environment, (B, N), with their free latents drawn from the prior.

    Args:
        noise: from N(0, 1), (2, B, N): for the codes and for the free latents.
    """
    mean, deviation = learner.codes(images)
    free = free_latents(learner, learner.environment(images))
    return torch.where(free, noise[1], mean + deviation * noise[0])


@torch.no_grad()
def imagine(learner: VASE, images: Tensor, noise: Tensor, past: bool = False) -> Tensor:
    """Decode the codes that `explore` makes of images, to pixels in [0, 1].

    Args:
        past: decode in the environment that uses most of the free latents, not in that of the images, where
            the decoder has learned to ignore them.
    """
    environment = learner.environment(images)
    if past:
        environment = _richest(learner, environment)
    return learner.decode(explore(learner, images, noise), environment).sigmoid()


def _used_elsewhere(learner: VASE, environment: Tensor) -> Tensor:
    """Return which latents every environment but this one uses, (E, N)."""
    others = (
        torch.arange(learner.settings.max_environments, device=environment.device) != environment
    )
    return learner.environments.stats.used & (learner.environments.known & others)[:, None]


def _richest(learner: VASE, environment: Tensor) -> Tensor:
    """Return the other environment that uses most of the free latents; this one if none uses any."""
    uses = (_used_elsewhere(learner, environment) & free_latents(learner, environment)).sum(1)
    return torch.where(uses.any(), uses.argmax(), environment)
