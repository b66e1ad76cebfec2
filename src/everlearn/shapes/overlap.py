"""Similarity of shapes in canonical form: intersection over union of their areas."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from everlearn.core.random import Floats
from everlearn.shapes.geometry import evaluate

MASK_SIDE = 96
_STEPS = np.arange(16) / 16
# Centres of the cells of a grid over [-1, 1]. Every canonical shape lies inside, because its box has
# side 1 and contains the origin.
_CENTERS = (np.arange(MASK_SIDE) + 0.5) * (2.0 / MASK_SIDE) - 1.0


def packed_masks(coefficients: Floats) -> NDArray[np.uint8]:
    """Return masks of the inside of curves, on a 96 x 96 grid over [-1, 1]**2, as packed bits (B, 1152)."""
    count = len(coefficients)
    start = evaluate(coefficients, _STEPS).reshape(count, -1, 2)
    end = np.roll(start, -1, axis=1)
    below_start = start[..., 1, None] <= _CENTERS
    below_end = end[..., 1, None] <= _CENTERS
    shape, edge, line = np.nonzero(below_start != below_end)
    x0, y0 = start[shape, edge].T
    x1, y1 = end[shape, edge].T
    x = x0 + (_CENTERS[line] - y0) * (x1 - x0) / (y1 - y0)
    column = np.searchsorted(_CENTERS, x)
    # Every crossing of a scan line toggles all cells to its right (even-odd rule).
    toggles = np.zeros((count, MASK_SIDE, MASK_SIDE + 1), np.uint8)
    np.bitwise_xor.at(toggles, (shape, line, column), 1)
    inside = np.bitwise_xor.accumulate(toggles, axis=2)[..., :MASK_SIDE]
    return np.packbits(inside.reshape(count, -1), axis=1)


def iou_distances(mask: NDArray[np.uint8], others: NDArray[np.uint8]) -> Floats:
    """Return 1 - intersection over union of a mask with others, (N,): 0 if equal, 1 if disjoint."""
    both = np.bitwise_count(others & mask).sum(axis=1, dtype=np.int64)
    either = np.bitwise_count(others | mask).sum(axis=1, dtype=np.int64)
    distances: Floats = 1.0 - both / either
    return distances


def nearest_iou_distances(masks: NDArray[np.uint8]) -> Floats:
    """Return the distance of every mask (N, ...) to its nearest neighbour, (N,), for N >= 2."""
    nearest = np.empty(len(masks))
    for row in range(len(masks)):
        distances = iou_distances(masks[row], masks)
        distances[row] = np.inf
        nearest[row] = distances.min()
    return nearest
