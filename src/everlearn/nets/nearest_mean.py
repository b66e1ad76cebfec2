"""Features of a net in evaluation mode, and classification by the nearest class mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from everlearn.nets.precision import deterministic, eval_mode


def extract_features(net: nn.Module, images: Tensor) -> Tensor:
    """Return features (B, width), float32, in evaluation mode; the net does not change."""
    backbone: Any = net
    with eval_mode(net), deterministic():
        features: Tensor = backbone.features(images.contiguous(memory_format=torch.channels_last))
    return features.float()


def nearest_class(
    features: Tensor,
    means: Tensor,
    known: Tensor,
    classes: range,
    among: Sequence[int] | None = None,
) -> Tensor:
    """Return the class of the nearest mean for features (B, width); -1 where no class is allowed.

    Args:
        means: (classes, width).
        known: (classes,) which rows of `means` hold a mean.
        among: allow these classes only.
    """
    if among is not None:
        targets = torch.tensor(list(among), dtype=torch.int64) - classes.start
        known = known & torch.isin(torch.arange(len(classes)), targets).to(known.device)
    # |f - m|^2 is least where f.m - |m|^2 / 2 is largest (Mensink et al. 2013, section 3.1).
    # In float64 the scores of a class do not depend on the number of classes after it.
    centers = means.double()
    scores = linear(features.double(), centers, -centers.square().sum(1) / 2)
    scores = scores.masked_fill(~known, -torch.inf)
    return torch.where(known.any(), scores.argmax(1) + classes.start, -1)
