"""The summary: accuracy after so many tasks, what was lost and gained, and what it cost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from everlearn.metrics import curve
from everlearn.report import numbers
from everlearn.report.groups import Group
from everlearn.report.load import Finished
from everlearn.report.spread import describe, over_seeds
from everlearn.report.table import Column, Table, first_cells, mean_cells

_SHORT = (1, 2, 5, 10, 20, 50)
_LONG = (
    10,
    50,
    100,
    200,
    500,
    *(digit * 10**power for power in range(3, 9) for digit in (1, 2, 5)),
)
_LONG_FROM = 100  # tasks
_AFTER = (
    Column("forgetting", "forgetting", numbers.share),
    Column("backward_transfer", "backward transfer", numbers.change),
    Column("forward_transfer", "forward transfer", numbers.change),
    Column("stability_gap", "stability gap", numbers.change),
    Column("bytes", "stored", numbers.size),
    Column("seconds", "learning", numbers.seconds),
)

Accuracies = dict[int, float]


def summary_table(groups: Sequence[Group]) -> Table:
    """Make one row a group, with accuracy after 10, 50, 100 .. tasks; of short streams 1, 2, 5 .."""
    found = [[_by_tasks(run) for run in group.runs] for group in groups]
    moments = _moments({tasks for runs in found for run in runs for tasks in run})
    rows = [
        [*first_cells(g), *_moment_cells(runs, moments), *_last_cells(g), *mean_cells(g, _AFTER)]
        for g, runs in zip(groups, found, strict=True)
    ]
    after = [f"after {tasks:,} task{'s' * (tasks > 1)}" for tasks in moments]
    head = ["method", "seeds", *after, "average accuracy", "interval", *(c.title for c in _AFTER)]
    return Table("Summary", head, rows, _note(groups))


def _note(groups: Sequence[Group]) -> str:
    counts = {len(group.values("average_accuracy")) for group in groups}
    return (
        "Accuracy over all tasks met by then; average accuracy: after the last task tested. "
        f"Intervals of it: {describe(counts)}. Other numbers: means over the seeds."
    )


def _by_tasks(run: Finished) -> Accuracies:
    """Accuracy over all tasks met, by how many were learned."""
    found = curve(run.rows)
    there = ~np.isnan(found.accuracy)
    tasks, values = (found.learned + 1)[there].tolist(), found.accuracy[there].tolist()
    return dict(zip(tasks, values, strict=True))


def _moments(measured: set[int]) -> list[int]:
    chosen = _LONG if max(measured, default=0) >= _LONG_FROM else _SHORT
    return [tasks for tasks in chosen if tasks in measured]


def _moment_cells(runs: Sequence[Accuracies], moments: Sequence[int]) -> list[str]:
    found = [[run[tasks] for run in runs if tasks in run] for tasks in moments]
    return [numbers.share(sum(each) / len(each)) if each else numbers.NONE for each in found]


def _last_cells(group: Group) -> list[str]:
    values = list(group.values("average_accuracy").values())
    if not values:
        return [numbers.NONE, numbers.NONE]
    mean, low, high = (float(end[0]) for end in over_seeds(np.array(values)[:, None]))
    if len(values) == 1:
        # A mean over tasks of different sizes need not be the pooled share.
        low = min(mean, *group.values("accuracy_low").values())
        high = max(mean, *group.values("accuracy_high").values())
    return [numbers.share(mean), f"{numbers.share(low)} to {numbers.share(high)}"]
