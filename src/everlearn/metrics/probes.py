"""Accuracy while training: for each task, a series of evaluations on a small fixed subset."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everlearn.metrics.measured import Floats, Ints
from everlearn.metrics.proportion import share
from everlearn.rows import ProbeRow, Row, TaskRow, of_kind


class Series(NamedTuple):
    """Evaluations of one task, in the order of training.

    Attributes:
        step: (N,) optimizer steps since the start of the stream.
        learned: (N,) task that was being learned; -1 before the first step.
        correct: (N,).
        total: (N,).
    """

    step: Ints
    learned: Ints
    correct: Ints
    total: Ints

    @property
    def accuracy(self) -> Floats:
        """a(n) of shape (N,), NaN where there was nothing to test."""
        return share(self.correct, self.total)

    def where(self, condition: NDArray[np.bool_]) -> Series:
        """Keep the evaluations that meet a condition, of those that tested something."""
        kept = condition & (self.total > 0)
        return Series(*(column[kept] for column in self))


def probes(rows: Iterable[Row]) -> dict[int, Series]:
    """Gather the probe rows by the task tested; of two rows for one moment the later counts."""
    found: dict[int, dict[tuple[int, int], tuple[int, int]]] = {}
    for row in of_kind(rows, ProbeRow):
        moment = (row["step"], row["learned"])
        found.setdefault(row["tested"], {})[moment] = (row["correct"], row["total"])
    return {task: _series(found[task]) for task in sorted(found)}


def ends_of_tasks(rows: Iterable[Row]) -> dict[int, int]:
    """Read from the task rows at which step each task ended."""
    return {row["learned"]: row["step"] for row in of_kind(rows, TaskRow)}


def _series(points: dict[tuple[int, int], tuple[int, int]]) -> Series:
    columns = np.array([(*moment, *points[moment]) for moment in sorted(points)], np.int64).T
    return Series(*columns)
