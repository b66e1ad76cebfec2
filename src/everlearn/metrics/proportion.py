"""Proportions: the share of correct answers, and its confidence interval."""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from everlearn.core.validate import check_number
from everlearn.metrics.measured import Floats, Ints


class Interval(NamedTuple):
    """The ends of intervals, arrays of the shape of the counts."""

    low: Floats
    high: Floats


def share(correct: ArrayLike, total: ArrayLike) -> Floats:
    """Divide counts; NaN where nothing was counted."""
    correct, total = _check_counts(correct, total)
    shares = np.full(correct.shape, np.nan)
    np.divide(correct, total, out=shares, where=total > 0)
    return shares


def wilson(correct: ArrayLike, total: ArrayLike, confidence: float = 0.95) -> Interval:
    """Return Wilson's score intervals (1927) of arrays of counts; NaN where nothing was counted."""
    check_number(confidence, "confidence", 0.0, 1 - 1e-12)
    p = share(correct, total)
    n = np.maximum(total, 1)
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return Interval(np.clip(centre - half, 0, p), np.clip(centre + half, p, 1))


def _check_counts(correct: ArrayLike, total: ArrayLike) -> tuple[Ints, Ints]:
    correct, total = np.broadcast_arrays(np.asarray(correct), np.asarray(total))
    if correct.size and (correct.dtype.kind not in "iu" or total.dtype.kind not in "iu"):
        raise TypeError(f"counts must be whole numbers, found {correct.dtype} of {total.dtype}")
    wrong = (correct < 0) | (correct > total)
    if wrong.any():
        found = f"{correct[wrong][0]} of {total[wrong][0]}"
        raise ValueError(f"a count of correct answers must lie in 0 .. its total, found {found}")
    return correct.astype(np.int64), total.astype(np.int64)
