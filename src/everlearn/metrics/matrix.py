"""The task matrix: correct answers on each task after learning each task."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everlearn.metrics.diagonal import just_learned
from everlearn.metrics.measured import Floats, Ints
from everlearn.metrics.proportion import share
from everlearn.rows import Row, TestRow, WithinTaskRow, of_kind


class Table(NamedTuple):
    """Counts by task learned last and task tested.

    Attributes:
        learned: (L,) rising; -1 is before any learning.
        tested: (T,) rising.
        correct: (L, T).
        total: (L, T), 0 where not measured.
        diagonal: (T,) accuracy right after learning each task, NaN where not measured; None: that of the
            entries above.
    """

    learned: Ints
    tested: Ints
    correct: Ints
    total: Ints
    diagonal: Floats | None = None

    @property
    def accuracy(self) -> Floats:
        """R of shape (L, T), NaN where not measured."""
        return share(self.correct, self.total)

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Whether the task tested had been learned, (L, T)."""
        return self.tested <= self.learned[:, None]

    @property
    def just_learned(self) -> Floats:
        """R_ii of shape (T,), NaN where not measured."""
        if self.diagonal is not None:
            return self.diagonal
        values = np.full(len(self.tested), np.nan)
        _, rows, columns = np.intersect1d(self.learned, self.tested, return_indices=True)
        values[columns] = self.accuracy[rows, columns]
        return values


class Curve(NamedTuple):
    """Accuracy over all tasks learned so far, one entry for each measured moment.

    Attributes:
        learned: (L,) rising, from 0 on.
        correct: (L,) summed over the tasks tested.
        total: (L,) summed over the tasks tested.
        accuracy: (L,) mean of the tasks' accuracies, NaN where none was measured.
    """

    learned: Ints
    correct: Ints
    total: Ints
    accuracy: Floats


def table(rows: Iterable[Row], row_type: type[TestRow] | type[WithinTaskRow] = TestRow) -> Table:
    """Gather the tests; of two rows for one pair of tasks the later counts.

    Rows of kind diagonal add the accuracies right after learning each task, and nothing else.

    Args:
        row_type: WithinTaskRow for answers restricted to the classes of the tested task.
    """
    rows = list(rows)
    counts = {
        (row["learned"], row["tested"]): (row["correct"], row["total"])
        for row in of_kind(rows, row_type)
    }
    pairs = np.array(list(counts), np.int64).reshape(-1, 2)
    learned, at_row = np.unique(pairs[:, 0], return_inverse=True)
    tested, at_column = np.unique(pairs[:, 1], return_inverse=True)
    correct, total = np.zeros((2, len(learned), len(tested)), np.int64)
    correct[at_row, at_column] = [count[0] for count in counts.values()]
    total[at_row, at_column] = [count[1] for count in counts.values()]
    diagonal = _diagonal(rows, tested) if row_type is TestRow else None
    return Table(learned, tested, correct, total, diagonal)


def _diagonal(rows: list[Row], tested: Ints) -> Floats:
    """Return R_ii (T,) of the tasks tested."""
    measured = just_learned(rows)
    values = np.full(len(tested), np.nan)
    _, places, columns = np.intersect1d(measured.tasks, tested, return_indices=True)
    values[columns] = measured.accuracy[places]
    return values


def curve(rows: Iterable[Row]) -> Curve:
    """Pool the test rows of the tasks learned so far, for every measured moment."""
    return pooled(table(rows))


def pooled(table: Table) -> Curve:
    """Pool a table's entries of the tasks learned so far, for every measured moment."""
    counted = table.seen & (table.total > 0)
    correct = np.where(counted, table.correct, 0).sum(axis=1)
    total = np.where(counted, table.total, 0).sum(axis=1)
    sums = np.where(counted, table.accuracy, 0.0).sum(axis=1)
    count = counted.sum(axis=1)
    means = np.divide(sums, count, out=np.full(len(count), np.nan), where=count > 0)
    later = table.learned >= 0
    return Curve(table.learned[later], correct[later], total[later], means[later])
