"""Bins of equal width, on a line and on a circle."""

from __future__ import annotations

import math

import numpy as np

from everlearn.metrics.measured import Floats, Ints

# A value this close below an edge, as a share of the complete width, counts as on it, so that rounding
# moves no value to another bin.
_EDGE = 1e-9


def bin_line(values: Floats, bins: int) -> Ints:
    """Number the bins between the lowest and the highest value along the first axis; all 0 if equal."""
    low = values.min(axis=0)
    width = np.ptp(values, axis=0)
    return _number((values - low) / np.where(width > 0, width, 1.0), bins)


def bin_circle(angles: Floats, bins: int) -> Ints:
    """Number the bins of angles (P,), radians: of the complete circle from 0 on, or of an arc of it.

    If an arc wider than a bin holds no angle, the bins divide the rest of the circle, so that a factor
    with a small range is binned as finely as one with the full range.
    """
    turns = np.mod(angles / (2 * math.pi), 1.0)
    start, width = _occupied(np.unique(turns), bins)
    if width < _EDGE:
        return np.zeros(len(angles), np.int64)
    return _number(np.mod(turns - start + _EDGE, 1.0) / width, bins)


def _occupied(turns: Floats, bins: int) -> tuple[float, float]:
    """Return the start and the length of the arc that holds all of some rising turns."""
    gaps = np.diff(turns, append=turns[0] + 1)
    if gaps.max() <= 1 / bins:
        return 0.0, 1.0
    # Of equal gaps, as on a grid, take the one across 0.
    widest = len(gaps) - 1 if gaps[-1] >= gaps.max() - _EDGE else int(gaps.argmax())
    return float(turns[(widest + 1) % len(turns)]), float(1 - gaps[widest])


def _number(shares: Floats, bins: int) -> Ints:
    return np.minimum(np.floor(shares * bins + _EDGE), bins - 1).astype(np.int64)
