"""The lines of a figure: accuracy of a method over time, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everlearn.metrics import all_classes, curve, ends_of_tasks, probes
from everlearn.report.loaded_run import LoadedRun
from everlearn.report.tables.groups import Group
from everlearn.report.tables.intervals import (
    Floats,
    Ints,
    interval_over_images,
    interval_over_seeds,
)

_MAX_SEGMENTS = 150  # a segment of a downsampled line keeps two points


class Line(NamedTuple):
    """A method's accuracy over time.

    Attributes:
        x: (N,) tasks learned, optimiser steps, or any other number.
        mean: (N,) over seeds.
        low: (N,) lower ends of the intervals.
        high: (N,) upper ends of the intervals.
    """

    label: str
    method: str
    x: Ints | Floats
    mean: Floats
    low: Floats
    high: Floats


class Points(NamedTuple):
    """The measurements of one seed, arrays (N,); x is strictly increasing."""

    x: Ints
    correct: Ints
    total: Ints
    accuracy: Floats

    def at(self, x: Ints) -> Points:
        """Keep the measurements at the given values of x."""
        return self.where(np.isin(self.x, x))

    def where(self, kept: NDArray[np.bool_]) -> Points:
        """Keep the measurements where the mask is true."""
        return Points(self.x[kept], self.correct[kept], self.total[kept], self.accuracy[kept])


def accuracy_lines(groups: Sequence[Group]) -> list[Line]:
    """Return accuracy over all tasks so far against tasks learned, one line per group."""
    return [_line(group, [_tested(run) for run in group.runs]) for group in groups]


def all_classes_lines(groups: Sequence[Group], seen_only: bool = False) -> list[Line]:
    """Return accuracy on all classes of the stream, or on those seen, against tasks learned.

    Groups without such a test are left out.
    """
    tested = [
        group._replace(runs=[run for run in group.runs if len(all_classes(run.rows).learned)])
        for group in groups
    ]
    return [
        _line(group, [_all_classes(run, seen_only) for run in group.runs])
        for group in tested
        if group.runs
    ]


def probe_lines(groups: Sequence[Group]) -> dict[tuple[int, ...], list[Line]]:
    """Return accuracy on task 1 against optimiser steps, keyed by the steps at which tasks ended.

    Groups without probe rows are left out.
    """
    found: dict[tuple[int, ...], list[Line]] = {}
    for group in groups:
        runs = [run for run in group.runs if probes(run.rows)]
        if runs:
            ends = tuple(sorted(ends_of_tasks(runs[0].costs).values()))
            line = _line(group, [_probed(run) for run in runs])
            found.setdefault(ends, []).append(downsample(line))
    return found


def downsample(line: Line, segments: int = _MAX_SEGMENTS) -> Line:
    """Keep the lowest and the highest point of each segment of a long line: its dips and peaks."""
    if len(line.x) <= 2 * segments:
        return line
    indices = np.array_split(np.arange(len(line.x)), segments)
    extremes = [[s[line.mean[s].argmin()], s[line.mean[s].argmax()]] for s in indices]
    kept = np.unique([0, len(line.x) - 1, *np.ravel(extremes)])
    return line._replace(
        **{name: getattr(line, name)[kept] for name in ("x", "mean", "low", "high")}
    )


def _tested(run: LoadedRun) -> Points:
    found = curve(run.rows)
    return _clean(Points(found.learned + 1, found.correct, found.total, found.accuracy))


def _all_classes(run: LoadedRun, seen_only: bool) -> Points:
    found = all_classes(run.rows)
    if seen_only:
        return Points(found.learned + 1, found.seen_correct, found.seen_total, found.seen_accuracy)
    return Points(found.learned + 1, found.correct, found.total, found.accuracy)


def _probed(run: LoadedRun) -> Points:
    series = probes(run.rows)
    first = series[min(series)]
    return _clean(Points(first.step, first.correct, first.total, first.accuracy))


def _clean(points: Points) -> Points:
    """Drop empty measurements, and of two measurements at one x the earlier."""
    measured = points.where(points.total > 0)
    return measured.where(np.diff(measured.x, append=np.inf) > 0)


def _line(group: Group, seeds: Sequence[Points]) -> Line:
    x = reduce(np.intersect1d, [points.x for points in seeds])
    if not len(x):
        raise ValueError(
            f"the seeds of {group.label} have no test at the same time in common; report them "
            "separately"
        )
    shared = [points.at(x) for points in seeds]
    if len(shared) > 1:
        interval = interval_over_seeds(np.stack([points.accuracy for points in shared]))
    else:
        interval = interval_over_images(shared[0].accuracy, shared[0].correct, shared[0].total)
    return Line(group.label, group.method, x, *interval)
