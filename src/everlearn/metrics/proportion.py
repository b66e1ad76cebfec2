"""So many of so many: the share that was right and how sure it is."""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from everlearn.border import check_number
from everlearn.metrics.rows import Floats, Ints


class Interval(NamedTuple):
    """The ends of an interval, arrays of the shape that was asked for."""

    low: Floats
    high: Floats


def share(right: ArrayLike, total: ArrayLike) -> Floats:
    """Divide counts, NaN where nothing was counted."""
    right, total = _check_counts(right, total)
    shares = np.full(right.shape, np.nan)
    np.divide(right, total, out=shares, where=total > 0)
    return shares


def wilson(right: ArrayLike, total: ArrayLike, confidence: float = 0.95) -> Interval:
    """Bound the shares that fit the counts (Wilson 1927), NaN where nothing was counted."""
    check_number(confidence, "confidence", 0.0, 1 - 1e-12)
    p, n = share(right, total), np.maximum(total, 1)
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return Interval(np.clip(centre - half, 0, p), np.clip(centre + half, p, 1))


def _check_counts(right: ArrayLike, total: ArrayLike) -> tuple[Ints, Ints]:
    right, total = np.broadcast_arrays(np.asarray(right), np.asarray(total))
    if right.size and (right.dtype.kind not in "iu" or total.dtype.kind not in "iu"):
        raise TypeError(f"counts must be whole numbers, found {right.dtype} of {total.dtype}")
    wrong = (right < 0) | (right > total)
    if wrong.any():
        found = f"{right[wrong][0]} of {total[wrong][0]}"
        raise ValueError(f"a count of right ones must lie in 0 .. its total, found {found}")
    return right.astype(np.int64), total.astype(np.int64)
