"""Herding (Welling 2009): select items with a running mean close to the mean of all items.

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
    """Items by class: classes (C,), ascending, and item indices (C, M), padded with NONE."""

    classes: Ints
    items: Ints


def group(labels: Ints) -> Groups:
    """Group item indices by label, in their original order."""
    classes, counts = np.unique(labels, return_counts=True)
    items = np.full((len(classes), counts.max(initial=0)), NONE, np.int64)
    items[np.arange(items.shape[1]) < counts[:, None]] = np.argsort(labels, kind="stable")
    return Groups(classes, items)


def group_means(features: Tensor, items: Tensor, weights: Tensor) -> Tensor:
    """Return the weighted mean (C, D) of the features (N, D) of each group; weights are (N,)."""
    shares = weights[items.clamp(min=0)] * (items >= 0)
    sums = (shares[:, None] @ features[items.clamp(min=0)])[:, 0]
    return sums / shares.sum(1, keepdim=True)


def herd(features: Tensor, items: Tensor, means: Tensor, count: int) -> Tensor:
    """Select up to `count` items of each group, best first: (C, count), padded with NONE.

    The k-th item minimises |mean - (sum of the first k) / k|. For unit-length features this is the item
    with the largest dot product with k mean - (sum of the first k - 1).

    Args:
        features: (N, D), of length 1.
        items: (C, M), as in `Groups`.
        means: (C, D).
    """
    candidates = features[items.clamp(min=0)]
    rows = torch.arange(len(items), device=items.device)
    penalty = torch.zeros(items.shape, device=items.device).masked_fill(items < 0, -torch.inf)
    total = torch.zeros_like(means)
    selected = items.new_full((len(items), count), NONE)
    for k in range(min(count, items.shape[1])):
        target = (k + 1) * means - total
        best = ((candidates @ target[:, :, None])[:, :, 0] + penalty).argmax(1)
        selected[:, k] = torch.where(penalty[rows, best] == 0, items[rows, best], NONE)
        total = total + candidates[rows, best]
        penalty[rows, best] = -torch.inf
    return selected
