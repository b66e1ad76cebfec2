"""The open-set curve of the paper on disentangled continual learning: two rates over a threshold.

The paper calls them precision and recall; they are the accuracies on seen and on unseen classes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from everlearn.metrics.measured import Floats, Ints
from everlearn.metrics.open_set import check_scores

# On d2/d1, squared distances to the second nearest and the nearest exemplar: 0, 0.01 .. 5.
THRESHOLDS: Floats = np.arange(501) / 100


class PaperCurve(NamedTuple):
    """Counts at every threshold, (501,), and totals.

    Attributes:
        seen: known images called seen.
        unseen: unknown images called unseen.
        known: all known images.
        unknown: all unknown images.
    """

    threshold: Floats
    seen: Ints
    unseen: Ints
    known: int
    unknown: int

    @property
    def seen_rate(self) -> Floats:
        """Fraction of the known images called seen, (501,) falling."""
        return self.seen / self.known

    @property
    def unseen_rate(self) -> Floats:
        """Fraction of the unknown images called unseen, (501,) rising."""
        return self.unseen / self.unknown


def paper_curve(known: ArrayLike, unknown: ArrayLike) -> PaperCurve:
    """Call an image seen where d2/d1 is over the threshold, for scores d1/d2."""
    known = _inverse(known, "known")
    unknown = _inverse(unknown, "unknown")
    seen = len(known) - np.searchsorted(known, THRESHOLDS, "right")
    unseen = np.searchsorted(unknown, THRESHOLDS, "right")
    return PaperCurve(THRESHOLDS, seen, unseen, len(known), len(unknown))


def paper_area(curve: PaperCurve) -> float:
    """Return the area under the seen rate over the unseen rate, up to the last threshold."""
    return float(np.trapezoid(curve.seen_rate, curve.unseen_rate))


def _inverse(scores: ArrayLike, name: str) -> Floats:
    """Turn scores d1/d2 into sorted ratios d2/d1."""
    ratios = check_scores(scores, name)
    if ratios.min() < 0:
        raise ValueError(f"{name} must hold ratios d1/d2 of 0 or more, found {ratios.min()}")
    with np.errstate(divide="ignore", over="ignore"):
        return np.sort(1 / np.abs(ratios))
