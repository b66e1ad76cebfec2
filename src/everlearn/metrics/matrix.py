"""The task matrix: how many of each task's test images were right after learning each task."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everlearn.metrics.proportion import share
from everlearn.metrics.rows import Floats, Ints, Row, of_kind


class Table(NamedTuple):
    """Counts by task learned last and task tested.

    Attributes:
        learned: (L,) rising; -1 is before any learning.
        tested: (T,) rising.
        right: (L, T).
        total: (L, T), 0 where not measured.
    """

    learned: Ints
    tested: Ints
    right: Ints
    total: Ints

    @property
    def accuracy(self) -> Floats:
        """R of shape (L, T), NaN where not measured."""
        return share(self.right, self.total)

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Whether the task tested had been learned, (L, T)."""
        return self.tested <= self.learned[:, None]


class Curve(NamedTuple):
    """Accuracy over all tasks learned so far, one entry a measured moment.

    Attributes:
        learned: (L,) rising, from 0 on.
        right: (L,) pooled over the tasks tested.
        total: (L,) likewise.
        accuracy: (L,) mean of the tasks' accuracies, NaN where none was measured.
    """

    learned: Ints
    right: Ints
    total: Ints
    accuracy: Floats


def table(rows: Iterable[Row], kind: str = "test") -> Table:
    """Gather the test rows; of two rows for one pair of tasks the later one holds.

    Args:
        kind: "test", or "within" for answers among the classes of the task alone.
    """
    counts = {
        (row["learned"], row["tested"]): (row["right"], row["total"]) for row in of_kind(rows, kind)
    }
    pairs = np.array(list(counts), np.int64).reshape(-1, 2)
    learned, at_row = np.unique(pairs[:, 0], return_inverse=True)
    tested, at_column = np.unique(pairs[:, 1], return_inverse=True)
    cells = np.zeros((2, len(learned), len(tested)), np.int64)
    cells[:, at_row, at_column] = np.array(list(counts.values()), np.int64).reshape(-1, 2).T
    return Table(learned, tested, *cells)


def curve(rows: Iterable[Row]) -> Curve:
    """Pool the test rows of the tasks learned so far, for every measured moment."""
    return pooled(table(rows))


def pooled(table: Table) -> Curve:
    """Pool a table's entries of the tasks learned so far, for every measured moment."""
    counted = table.seen & (table.total > 0)
    right, total = (np.where(counted, c, 0).sum(axis=1) for c in (table.right, table.total))
    sums = np.where(counted, table.accuracy, 0.0).sum(axis=1)
    count = counted.sum(axis=1)
    means = np.divide(sums, count, out=np.full(len(count), np.nan), where=count > 0)
    later = table.learned >= 0
    return Curve(table.learned[later], right[later], total[later], means[later])
