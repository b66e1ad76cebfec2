"""What experiments read off runs, for figures and verdicts: accuracies at some point, and lines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from everlearn.metrics import curve, share, wilson
from everlearn.report import Group
from everlearn.report.chapter import Figure
from everlearn.report.chart import Bar, draw_bars, draw_lines
from everlearn.report.lines import Line, accuracy_lines
from everlearn.report.numbers import NONE


def accuracy_at(group: Group, tasks: int) -> float | None:
    """Mean over seeds of the accuracy on all tasks met, after so many; None where it was not tested."""
    found = [_accuracy_at(run.rows, tasks) for run in group.runs]
    known = [value for value in found if value is not None]
    return float(np.mean(known)) if known else None


def last_accuracy(group: Group) -> float:
    """Mean over seeds of the accuracy at the end."""
    return float(np.mean([run.summary["average_accuracy"] for run in group.runs]))


def mean(group: Group, name: str) -> float | None:
    """Mean over seeds of a number of the summary."""
    found = list(group.values(name).values())
    return sum(found) / len(found) if found else None


def last_pooled(group: Group) -> float:
    """Mean over seeds of the share of all test images named right at the end."""
    ends = [curve(run.rows) for run in group.runs]
    return float(np.mean([share(end.right[-1], end.total[-1]) for end in ends]))


def cell(group: Group, name: str, digits: int = 3) -> str:
    """A number of the summary as a table shows it."""
    return shown(mean(group, name), digits)


def with_spread(values: Sequence[float], digits: int) -> str:
    """The mean of several seeds as a table shows it, and how far they lie apart."""
    if not values:
        return NONE
    apart = f" ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{apart}"


def shown(value: float | None, digits: int = 3) -> str:
    """A number as a table shows it, where it is known."""
    return NONE if value is None else f"{value:.{digits}f}"


def bars(groups: Sequence[Group], name: str, figure: str, x: str, caption: str) -> list[Figure]:
    """A bar a group, of a number of the summary; nothing where none was measured."""
    values = {group.label: mean(group, name) for group in groups}
    found = [
        Bar(group.label, group.method, value, value, value)
        for group in groups
        if (value := values[group.label]) is not None
    ]
    return [Figure(draw_bars(found, figure, x, f"{x}, by method"), caption)] if found else []


def lines(
    drawn: Sequence[Line], name: str, x: str, y: str, caption: str, top: float | None = 1.0
) -> list[Figure]:
    """A figure of lines; nothing where there are none."""
    words = f"{y} against {x}"
    return [Figure(draw_lines(drawn, name, x, y, words, top=top), caption)] if drawn else []


def curves(groups: Sequence[Group], name: str, caption: str) -> list[Figure]:
    """Accuracy on all tasks so far against tasks learned; nothing where there are no runs."""
    return lines(accuracy_lines(groups), name, "tasks learned", "accuracy", caption)


def points(label: str, method: str, x: Sequence[float], counts: Sequence[tuple[int, int]]) -> Line:
    """A line through shares of counts (right, total), with Wilson's intervals."""
    right, total = np.array(counts, np.int64).T
    low, high = wilson(right, total)
    return Line(label, method, np.array(x), share(right, total), np.array(low), np.array(high))


def _accuracy_at(rows: Sequence[dict[str, object]], tasks: int) -> float | None:
    found = curve(rows)
    place = np.flatnonzero((found.learned == tasks - 1) & (found.total > 0))
    return float(found.accuracy[place[0]]) if len(place) else None
