"""Herding (Welling 2009): choose items whose mean is soon near the mean of all.

As in iCaRL (Rebuffi et al. 2017, algorithm 4), for several classes at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Ints = NDArray[np.int64]
NONE = -1


class Groups(NamedTuple):
    """Items by their class: the classes (C,), ascending, and item numbers (C, most), then NONE."""

    classes: Ints
    items: Ints


def group(labels: Ints) -> Groups:
    """Put items together that have the same label, in the order they come."""
    classes, counts = np.unique(labels, return_counts=True)
    items = np.full((len(classes), counts.max(initial=0)), NONE, np.int64)
    items[np.arange(items.shape[1]) < counts[:, None]] = np.argsort(labels, kind="stable")
    return Groups(classes, items)


def mean_of(features: Tensor, items: Tensor, weights: Tensor) -> Tensor:
    """The weighted mean (C, D) of the features (N, D) of each group; weights are (N,)."""
    shares = weights[items.clamp(min=0)] * (items >= 0)
    sums = (shares[:, None] @ features[items.clamp(min=0)])[:, 0]
    return sums / shares.sum(1, keepdim=True)


def herd(features: Tensor, items: Tensor, means: Tensor, count: int) -> Tensor:
    """Choose up to `count` items of each group, best first: (C, count), NONE where there is no more.

    The k-th one makes |mean - (sum of the first k) / k| smallest. Features have length 1; then it is the
    item with the largest product with k mean - (sum of the first k - 1).

    Args:
        features: (N, D).
        items: (C, most), as in `Groups`.
        means: (C, D).
    """
    points, rows = features[items.clamp(min=0)], torch.arange(len(items), device=items.device)
    shut = torch.zeros(items.shape, device=items.device).masked_fill(items < 0, -torch.inf)
    total, chosen = torch.zeros_like(means), items.new_full((len(items), count), NONE)
    for place in range(min(count, items.shape[1])):
        wanted = (place + 1) * means - total
        best = ((points @ wanted[:, :, None])[:, :, 0] + shut).argmax(1)
        chosen[:, place] = torch.where(shut[rows, best] == 0, items[rows, best], NONE)
        total = total + points[rows, best]
        shut[rows, best] = -torch.inf
    return chosen
