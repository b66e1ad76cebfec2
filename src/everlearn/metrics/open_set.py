"""Open-set scores: how well a novelty score tells unknown images from known ones.

A larger score is more novel; unknown images are the positive ones.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from everlearn.border import check_number
from everlearn.metrics.rows import Floats, Ints


def auroc(known: ArrayLike, unknown: ArrayLike) -> float:
    """Share of pairs in which the unknown image scores higher, ties counting half."""
    known, unknown = check_scores(known, "known"), check_scores(unknown, "unknown")
    return _pairs_in_order(known, unknown) / (len(known) * len(unknown))


def average_precision(known: ArrayLike, unknown: ArrayLike) -> float:
    """Precision averaged over the gains of recall, equal scores taken together."""
    known, unknown = check_scores(known, "known"), check_scores(unknown, "unknown")
    cuts = np.unique(unknown)[::-1]
    hits = _count_from(unknown, cuts)
    precision = hits / (hits + _count_from(known, cuts))
    return float((np.diff(hits, prepend=0) * precision).sum() / len(unknown))


def fpr_at_tpr(known: ArrayLike, unknown: ArrayLike, tpr: float = 0.95) -> float:
    """Share of known images called unknown at the highest cut that finds `tpr` of the unknown."""
    known, unknown = check_scores(known, "known"), check_scores(unknown, "unknown")
    check_number(tpr, "tpr", 0.0, 1.0)
    # 0.55 * 100 is a little over 55: without the margin, one image too many would be asked for.
    needed = max(1, math.ceil(tpr * len(unknown) - 1e-9))
    cut = np.sort(unknown)[-needed]
    return float((known >= cut).mean())


def oscr(known: ArrayLike, unknown: ArrayLike, right: ArrayLike) -> float:
    """Area under the rate of known images accepted and right, over that of unknown ones accepted.

    Args:
        right: whether each known image was given its class.
    """
    known, unknown = check_scores(known, "known"), check_scores(unknown, "unknown")
    right = np.asarray(right, bool)
    if right.shape != known.shape:
        raise ValueError(
            f"right must have one entry a known image, {len(known)}, found {right.shape}"
        )
    return _pairs_in_order(known[right], unknown) / (len(known) * len(unknown))


def check_scores(scores: ArrayLike, name: str) -> Floats:
    """Return scores as an array, or say what is wrong with them."""
    array = np.asarray(scores, np.float64)
    if array.ndim != 1 or len(array) == 0 or not np.isfinite(array).all():
        found = f"shape {array.shape}, {np.isfinite(array).sum()} of {array.size} finite"
        raise ValueError(f"{name} must be a row of finite scores, at least one; found {found}")
    return array


def _pairs_in_order(known: Floats, unknown: Floats) -> float:
    """Pairs in which the unknown score is higher, ties counting half."""
    known = np.sort(known)
    below = np.searchsorted(known, unknown, "left").sum()
    up_to = np.searchsorted(known, unknown, "right").sum()
    return float(below + up_to) / 2


def _count_from(scores: Floats, cuts: Floats) -> Ints:
    """How many scores reach each cut."""
    return len(scores) - np.searchsorted(np.sort(scores), cuts, "left")
