"""Imagination: what is seen, varied in ways that were met elsewhere (appendix A.4 of VASE, as we read it).

In a new environment some latents do not apply: of digits that stand still, those of position. Drawn at
random, they lend the digits places that no digit has been seen at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from everlearn.methods.vase.usual import at

if TYPE_CHECKING:
    from everlearn.methods.vase import VASE


def varied(learner: VASE, place: Tensor) -> Tensor:
    """Which latents are used in another environment and are masked in this one (), (z,)."""
    return _used_elsewhere(learner, place).any(0) & (at(learner.world.masks, place) == 0)


@torch.no_grad()
def explore(learner: VASE, images: Tensor, noise: Tensor) -> Tensor:
    """Codes of images that belong together, (B, z), whose latents that only apply elsewhere are drawn.

    Args:
        noise: of N(0, 1), (2, B, z): for the codes, and for what is drawn instead.
    """
    mean, deviation = learner.codes(images)
    free = varied(learner, learner.environment(images))
    return torch.where(free, noise[1], mean + deviation * noise[0])


@torch.no_grad()
def imagine(learner: VASE, images: Tensor, noise: Tensor, past: bool = False) -> Tensor:
    """Draw what `explore` makes of images, in [0, 1].

    Args:
        past: draw it in the environment that uses most of the latents that were drawn, not in that of the
            images, whose decoder has learned to heed none of them.
    """
    here = learner.environment(images)
    place = _richest(learner, here) if past else here
    return learner.draw(explore(learner, images, noise), place).sigmoid()


def _used_elsewhere(learner: VASE, place: Tensor) -> Tensor:
    """Which latents every environment but this one uses, (most, z)."""
    others = torch.arange(learner.settings.most, device=place.device) != place
    return learner.world.used & (learner.world.known & others)[:, None]


def _richest(learner: VASE, place: Tensor) -> Tensor:
    """The other environment that uses most of the latents that vary; this one where there are none."""
    uses = (_used_elsewhere(learner, place) & varied(learner, place)).sum(1)
    return torch.where(uses.any(), uses.argmax(), place)
