"""The lines of a figure: accuracy of a method over time, with how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everlearn.metrics import curve, ends_of_tasks, probes, whole
from everlearn.report.groups import Group
from everlearn.report.load import Finished
from everlearn.report.spread import Floats, Ints, over_images, over_seeds

_MOST = 150  # stretches of a line that is looked at as a whole


class Line(NamedTuple):
    """A method's accuracy over time.

    Attributes:
        x: (N,) tasks learned, steps of the optimiser, or any other number.
        mean: (N,) over seeds.
        low: (N,) where its interval begins.
        high: (N,) where it ends.
    """

    label: str
    method: str
    x: Ints | Floats
    mean: Floats
    low: Floats
    high: Floats


class Points(NamedTuple):
    """What one seed measured, arrays (N,); x rises and has no value twice."""

    x: Ints
    right: Ints
    total: Ints
    accuracy: Floats

    def at(self, x: Ints) -> Points:
        """Keep the given places."""
        return self.where(np.isin(self.x, x))

    def where(self, kept: NDArray[np.bool_]) -> Points:
        """Keep the chosen measurements."""
        return Points(self.x[kept], self.right[kept], self.total[kept], self.accuracy[kept])


def accuracy_lines(groups: Sequence[Group]) -> list[Line]:
    """Accuracy over all tasks met against tasks learned, one line a group."""
    return [_line(group, [_tested(run) for run in group.runs]) for group in groups]


def whole_lines(groups: Sequence[Group], met: bool = False) -> list[Line]:
    """Accuracy on all classes of the stream, or on those met, against tasks learned.

    Groups without such a test are left out.
    """
    tested = [
        group._replace(runs=[run for run in group.runs if len(whole(run.rows).learned)])
        for group in groups
    ]
    return [
        _line(group, [_whole(run, met) for run in group.runs]) for group in tested if group.runs
    ]


def probe_lines(groups: Sequence[Group]) -> dict[tuple[int, ...], list[Line]]:
    """Accuracy on the first task against steps, by the steps at which tasks ended.

    Groups without a probe are left out.
    """
    found: dict[tuple[int, ...], list[Line]] = {}
    for group in groups:
        runs = [run for run in group.runs if probes(run.rows)]
        if runs:
            ends = tuple(sorted(ends_of_tasks(runs[0].costs).values()))
            line = _line(group, [_probed(run) for run in runs])
            found.setdefault(ends, []).append(thin(line))
    return found


def thin(line: Line, most: int = _MOST) -> Line:
    """A long line by the ends of its dips and peaks: of so many stretches the lowest and the highest."""
    if len(line.x) <= 2 * most:
        return line
    stretches = np.array_split(np.arange(len(line.x)), most)
    ends = [[s[line.mean[s].argmin()], s[line.mean[s].argmax()]] for s in stretches]
    kept = np.unique([0, len(line.x) - 1, *np.ravel(ends)])
    return line._replace(
        **{name: getattr(line, name)[kept] for name in ("x", "mean", "low", "high")}
    )


def _tested(run: Finished) -> Points:
    found = curve(run.rows)
    return _clean(Points(found.learned + 1, found.right, found.total, found.accuracy))


def _whole(run: Finished, met: bool) -> Points:
    found = whole(run.rows)
    if met:
        return Points(found.learned + 1, found.met_right, found.met_total, found.met_accuracy)
    return Points(found.learned + 1, found.right, found.total, found.accuracy)


def _probed(run: Finished) -> Points:
    series = probes(run.rows)
    first = series[min(series)]
    return _clean(Points(first.step, first.right, first.total, first.accuracy))


def _clean(points: Points) -> Points:
    """Leave out what was not measured, and of two measurements at one place the earlier."""
    measured = points.where(points.total > 0)
    return measured.where(np.diff(measured.x, append=np.inf) > 0)


def _line(group: Group, seeds: Sequence[Points]) -> Line:
    x = reduce(np.intersect1d, [points.x for points in seeds])
    if not len(x):
        raise ValueError(
            f"the seeds of {group.label} were never measured at the same moment; report them apart"
        )
    shared = [points.at(x) for points in seeds]
    if len(shared) > 1:
        span = over_seeds(np.stack([points.accuracy for points in shared]))
    else:
        span = over_images(shared[0].accuracy, shared[0].right, shared[0].total)
    return Line(group.label, group.method, x, *span)
