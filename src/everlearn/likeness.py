"""How alike two shapes are in canonical form: the area they share against the area of both."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from everlearn.curves import evaluate
from everlearn.philox import Floats

MASK_SIDE = 96
_STEPS = np.arange(16) / 16
# Every canonical shape lies inside: its box has side 1 and its origin lies in the box.
_LINES = (np.arange(MASK_SIDE) + 0.5) * (2.0 / MASK_SIDE) - 1.0


def masks(coefficients: Floats) -> NDArray[np.uint8]:
    """Sample the insides of curves on a 96 x 96 grid over [-1, 1]**2; packed bits (B, 1152)."""
    count = len(coefficients)
    start = evaluate(coefficients, _STEPS).reshape(count, -1, 2)
    end = np.roll(start, -1, axis=1)
    x0, y0, x1, y1 = start[..., 0], start[..., 1], end[..., 0], end[..., 1]
    shape, edge, line = np.nonzero((y0[..., None] <= _LINES) != (y1[..., None] <= _LINES))
    x0, y0, x1, y1 = x0[shape, edge], y0[shape, edge], x1[shape, edge], y1[shape, edge]
    x = x0 + (_LINES[line] - y0) * (x1 - x0) / (y1 - y0)
    column = np.searchsorted(_LINES, x)
    toggles = np.zeros((count, MASK_SIDE, MASK_SIDE + 1), np.uint8)
    np.bitwise_xor.at(toggles, (shape, line, column), 1)
    inside = np.bitwise_xor.accumulate(toggles, axis=2)[..., :MASK_SIDE]
    return np.packbits(inside.reshape(count, -1), axis=1)


def distances_to(mask: NDArray[np.uint8], others: NDArray[np.uint8]) -> Floats:
    """1 - intersection over union of one mask with each of many, (N,): 0 equal, 1 apart."""
    both = np.bitwise_count(others & mask).sum(axis=1, dtype=np.int64)
    either = np.bitwise_count(others | mask).sum(axis=1, dtype=np.int64)
    distances: Floats = 1.0 - both / either
    return distances


def nearest_distances(mine: NDArray[np.uint8]) -> Floats:
    """Distance of every mask (N, ...) to the nearest other one, (N,); needs two at least."""
    nearest = np.empty(len(mine))
    for row in range(len(mine)):
        distances = distances_to(mine[row], mine)
        distances[row] = np.inf
        nearest[row] = distances.min()
    return nearest
