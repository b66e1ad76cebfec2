"""Accuracy on each task right after learning it, and on the next task right before."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from everlearn.metrics.measured import Floats, Ints, NotMeasuredError, mean_of_measured
from everlearn.metrics.proportion import share
from everlearn.rows import DiagonalRow, Row, TestRow, of_kind


class JustLearned(NamedTuple):
    """Tests of tasks right after they were learned.

    Attributes:
        tasks: (T,) rising.
        correct: (T,).
        total: (T,).
    """

    tasks: Ints
    correct: Ints
    total: Ints

    @property
    def accuracy(self) -> Floats:
        """R_ii of shape (T,)."""
        return share(self.correct, self.total)


class NextTasks(NamedTuple):
    """Tests of tasks right before they were learned, with the answers restricted to their classes.

    Attributes:
        tasks: (T,) rising.
        correct: (T,).
        total: (T,).
        classes: (T,) number of classes to choose from.
        answered: (T,) images for which the learner named one of them.
    """

    tasks: Ints
    correct: Ints
    total: Ints
    classes: Ints
    answered: Ints


def just_learned(rows: Iterable[Row]) -> JustLearned:
    """Gather the accuracy of each task right after learning it, as `.tasks` and `.accuracy`.

    Of a full test and a row of kind diagonal for one task the full test counts: it may have more images.
    """
    kept = list(rows)
    tests = [
        row
        for row in (*of_kind(kept, DiagonalRow), *of_kind(kept, TestRow))
        if row["tested"] == row["learned"] and row["total"]
    ]
    counts = {row["tested"]: (row["correct"], row["total"]) for row in tests}
    columns = np.array([(task, *counts[task]) for task in sorted(counts)], np.int64).reshape(-1, 3)
    return JustLearned(*columns.T)


def next_tasks(rows: Iterable[Row]) -> NextTasks:
    """Gather the tests of the next task; of two rows for one task the later counts."""
    found = {
        row["tested"]: (row["correct"], row["total"], row["classes"], row["answered"])
        for row in of_kind(rows, DiagonalRow)
        if "classes" in row and "answered" in row and row["total"]
    }
    columns = np.array([(task, *found[task]) for task in sorted(found)], np.int64).reshape(-1, 5)
    return NextTasks(*columns.T)


def forward_transfer(tests: NextTasks) -> float:
    """Average over tasks the accuracy right before learning them, minus chance: mean_i (R_{i-1,i} - b_i).

    Lopez-Paz and Ranzato 2017 take for b_i the accuracy of the untrained net. Here b_i is 1 / (number of
    classes), its expectation: the outputs of an untrained net are exchangeable. Tasks for which the learner
    named none of the classes, and tasks of one class, do not count.
    """
    counted = (tests.answered > 0) & (tests.classes > 1)
    if len(tests.tasks) and not tests.answered.any():
        raise NotMeasuredError(
            "the learner names no class that it has not learned, so it has no accuracy on the next task"
        )
    gain = share(tests.correct, tests.total)[counted] - 1 / tests.classes[counted]
    return mean_of_measured(gain, "an accuracy on the next task (diagonal_images)")
