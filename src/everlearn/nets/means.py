"""What a net sees before its last layer, and which of some means is the nearest to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from everlearn.nets import fast


def features(net: nn.Module, images: Tensor) -> Tensor:
    """(B, width) float32, by the moments that the net keeps; nothing of it changes."""
    whole: Any = net
    with fast.evaluating(net), fast.steady():
        seen: Tensor = whole.features(images.contiguous(memory_format=torch.channels_last))
    return seen.float()


def name_nearest(
    seen: Tensor, means: Tensor, known: Tensor, classes: range, among: Sequence[int] | None = None
) -> Tensor:
    """Name the class of the nearest mean for features (B, width); -1 where there is none to name.

    Args:
        means: (classes, width).
        known: (classes,) which means there are.
        among: name one of these classes only.
    """
    if among is not None:
        asked = torch.tensor(list(among), dtype=torch.int64) - classes.start
        known = known & torch.isin(torch.arange(len(classes)), asked).to(known.device)
    # |f - m|^2 is least where f.m - |m|^2 / 2 is largest (Mensink et al. 2013, section 3.1).
    scores = linear(seen, means, -means.square().sum(1) / 2).masked_fill(~known, -torch.inf)
    return torch.where(known.any(), scores.argmax(1) + classes.start, -1)
