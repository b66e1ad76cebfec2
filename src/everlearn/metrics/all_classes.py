"""Accuracy on all classes of a stream, and on the classes seen so far, after each task."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from everlearn.metrics.measured import Floats, Ints, mean_of_measured
from everlearn.metrics.proportion import share
from everlearn.rows import AllClassesRow, Row, of_kind

_NEEDED = "a test on all classes (all_classes_every)"


class AllClasses(NamedTuple):
    """Counts of correct answers, in the order of learning.

    Attributes:
        learned: the last task learned, (K,).
        correct: test images of all classes of the stream that were classified correctly, (K,).
        total: how many there were, (K,).
        seen_correct: correct ones of the classes seen so far, (K,).
        seen_total: how many there were, (K,).
    """

    learned: Ints
    correct: Ints
    total: Ints
    seen_correct: Ints
    seen_total: Ints

    @property
    def accuracy(self) -> Floats:
        """On all classes of the stream, (K,)."""
        return share(self.correct, self.total)

    @property
    def seen_accuracy(self) -> Floats:
        """On the classes seen so far, (K,)."""
        return share(self.seen_correct, self.seen_total)


def all_classes(rows: Iterable[Row]) -> AllClasses:
    """Gather the tests on all classes; of two rows for one task the later counts."""
    found = {row["learned"]: row for row in of_kind(rows, AllClassesRow)}
    kept = [found[learned] for learned in sorted(found)]
    return AllClasses(
        np.array([row["learned"] for row in kept], np.int64),
        np.array([row["correct"] for row in kept], np.int64),
        np.array([row["total"] for row in kept], np.int64),
        np.array([row["seen_correct"] for row in kept], np.int64),
        np.array([row["seen_total"] for row in kept], np.int64),
    )


def final_accuracy(accuracies: Floats) -> float:
    """Return the last accuracy measured."""
    return mean_of_measured(accuracies[-1:], _NEEDED)


def mean_accuracy(accuracies: Floats) -> float:
    """Average the accuracies over the tasks after which they were measured."""
    return mean_of_measured(accuracies, _NEEDED)
