"""Accuracy on all classes of a stream, and on those met so far, after task by task."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from everlearn.metrics.proportion import share
from everlearn.metrics.rows import Floats, Ints, Row, mean_of_measured, of_kind

_NEEDED = "a test on all classes (whole)"


class Whole(NamedTuple):
    """What was measured, in the order of learning.

    Attributes:
        learned: the last task learned, (K,).
        right: how many test images of all classes of the stream were named right, (K,).
        total: how many there were, (K,).
        met_right: likewise of the classes met by then, (K,).
        met_total: likewise, (K,).
    """

    learned: Ints
    right: Ints
    total: Ints
    met_right: Ints
    met_total: Ints

    @property
    def accuracy(self) -> Floats:
        """On all classes of the stream, (K,)."""
        return share(self.right, self.total)

    @property
    def met_accuracy(self) -> Floats:
        """On the classes met by then, (K,)."""
        return share(self.met_right, self.met_total)


def whole(rows: Iterable[Row]) -> Whole:
    """Take the last row of every task after which all classes were tested."""
    found = {row["learned"]: row for row in of_kind(rows, "whole")}
    kept = [found[learned] for learned in sorted(found)]
    counts = ("learned", "right", "total", "met_right", "met_total")
    return Whole(*(np.array([row[name] for row in kept], np.int64) for name in counts))


def final_share(values: Floats) -> float:
    """What was measured last."""
    return mean_of_measured(values[-1:], _NEEDED)


def average_share(values: Floats) -> float:
    """The mean over the tasks after which it was measured."""
    return mean_of_measured(values, _NEEDED)
