"""What experiments read off runs, for figures and verdicts: accuracies at some point, and lines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from everlearn.metrics import curve, share, wilson
from everlearn.report import Group
from everlearn.report.chapter import Figure
from everlearn.report.chart import draw_lines
from everlearn.report.lines import Line, accuracy_lines


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


def curves(groups: Sequence[Group], name: str, caption: str) -> list[Figure]:
    """Accuracy on all tasks so far against tasks learned; nothing where there are no runs."""
    if not groups:
        return []
    words = "accuracy on all tasks so far against tasks learned, by method"
    svg = draw_lines(accuracy_lines(groups), name, "tasks learned", "accuracy", words)
    return [Figure(svg, caption)]


def points(label: str, method: str, x: Sequence[float], counts: Sequence[tuple[int, int]]) -> Line:
    """A line through shares of counts (right, total), with Wilson's intervals."""
    right, total = np.array(counts, np.int64).T
    low, high = wilson(right, total)
    return Line(label, method, np.array(x), share(right, total), np.array(low), np.array(high))


def _accuracy_at(rows: Sequence[dict[str, object]], tasks: int) -> float | None:
    found = curve(rows)
    place = np.flatnonzero((found.learned == tasks - 1) & (found.total > 0))
    return float(found.accuracy[place[0]]) if len(place) else None
