"""Accuracy while training: one series of small fixed-subset evaluations a task."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everlearn.metrics.proportion import share
from everlearn.metrics.rows import Floats, Ints, Row, of_kind


class Series(NamedTuple):
    """Evaluations of one task, in the order of training.

    Attributes:
        step: (N,) optimiser steps since the start of the stream.
        learned: (N,) task that was being learned; -1 before the first step.
        right: (N,).
        total: (N,).
    """

    step: Ints
    learned: Ints
    right: Ints
    total: Ints

    @property
    def accuracy(self) -> Floats:
        """a(n) of shape (N,), NaN where there was nothing to test."""
        return share(self.right, self.total)

    def where(self, chosen: NDArray[np.bool_]) -> Series:
        """Keep the chosen evaluations, of those that tested something."""
        kept = chosen & (self.total > 0)
        return Series(*(column[kept] for column in self))


def probes(rows: Iterable[Row]) -> dict[int, Series]:
    """Gather the probe rows by the task tested; of two rows for one moment the later one holds."""
    found: dict[int, dict[tuple[int, int], tuple[int, int]]] = {}
    for row in of_kind(rows, "probe"):
        moment = (row["step"], row["learned"])
        found.setdefault(row["tested"], {})[moment] = (row["right"], row["total"])
    return {task: _series(found[task]) for task in sorted(found)}


def ends_of_tasks(rows: Iterable[Row]) -> dict[int, int]:
    """Read from the task rows at which step each task ended."""
    return {row["learned"]: row["step"] for row in of_kind(rows, "task")}


def _series(points: dict[tuple[int, int], tuple[int, int]]) -> Series:
    columns = np.array([(*moment, *points[moment]) for moment in sorted(points)], np.int64).T
    return Series(*columns)
