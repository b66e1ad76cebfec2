"""Open-set metrics: how well a novelty score separates unknown images from known ones.

A larger score is more novel; unknown images are the positive class.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from everlearn.core.validate import check_number
from everlearn.metrics.measured import Floats, Ints


def auroc(known: ArrayLike, unknown: ArrayLike) -> float:
    """Return the share of pairs in which the unknown image scores higher; ties count half."""
    known = check_scores(known, "known")
    unknown = check_scores(unknown, "unknown")
    return _count_pairs(known, unknown) / (len(known) * len(unknown))


def average_precision(known: ArrayLike, unknown: ArrayLike) -> float:
    """Average precision over the gains of recall; equal scores are taken together."""
    known = check_scores(known, "known")
    unknown = check_scores(unknown, "unknown")
    thresholds = np.unique(unknown)[::-1]
    hits = _count_at_least(unknown, thresholds)
    precision = hits / (hits + _count_at_least(known, thresholds))
    return float((np.diff(hits, prepend=0) * precision).sum() / len(unknown))


def fpr_at_tpr(known: ArrayLike, unknown: ArrayLike, tpr: float = 0.95) -> float:
    """Return the share of known images above the threshold that finds `tpr` of the unknown ones."""
    known = check_scores(known, "known")
    unknown = check_scores(unknown, "unknown")
    check_number(tpr, "tpr", 0.0, 1.0)
    # 0.55 * 100 is a little over 55: without the margin, one image too many would be required.
    needed = max(1, math.ceil(tpr * len(unknown) - 1e-9))
    threshold = np.sort(unknown)[-needed]
    return float((known >= threshold).mean())


def oscr(known: ArrayLike, unknown: ArrayLike, correct: ArrayLike) -> float:
    """Return the open-set classification rate: the area under correct over false acceptance.

    Args:
        correct: whether each known image was classified correctly.
    """
    known = check_scores(known, "known")
    unknown = check_scores(unknown, "unknown")
    correct = np.asarray(correct, bool)
    if correct.shape != known.shape:
        raise ValueError(
            f"correct must have one entry for each known image, {len(known)}, found {correct.shape}"
        )
    return _count_pairs(known[correct], unknown) / (len(known) * len(unknown))


def check_scores(scores: ArrayLike, name: str) -> Floats:
    """Return scores as an array; raise where they are not finite or there are none."""
    array = np.asarray(scores, np.float64)
    if array.ndim != 1 or len(array) == 0 or not np.isfinite(array).all():
        found = f"shape {array.shape}, {np.isfinite(array).sum()} of {array.size} finite"
        raise ValueError(f"{name} must be a row of finite scores, at least one; found {found}")
    return array


def _count_pairs(known: Floats, unknown: Floats) -> float:
    """Count the pairs in which the unknown score is higher; ties count half."""
    known = np.sort(known)
    below = np.searchsorted(known, unknown, "left").sum()
    up_to = np.searchsorted(known, unknown, "right").sum()
    return float(below + up_to) / 2


def _count_at_least(scores: Floats, thresholds: Floats) -> Ints:
    """Count the scores at or above each threshold."""
    return len(scores) - np.searchsorted(np.sort(scores), thresholds, "left")
