"""The summary table: accuracy after milestones of the stream, forgetting, transfer and cost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from everlearn.metrics import curve
from everlearn.report.loaded_run import LoadedRun
from everlearn.report.tables import numbers
from everlearn.report.tables.groups import Group
from everlearn.report.tables.intervals import describe_intervals, interval_over_seeds
from everlearn.report.tables.table import Column, Table, first_cells, mean_cells, measured_columns

# Numbers of tasks learned.
_SHORT_MILESTONES = (1, 2, 5, 10, 20, 50)
_THOUSANDS = tuple(digit * 10**power for power in range(3, 9) for digit in (1, 2, 5))
_LONG_MILESTONES = (10, 50, 100, 200, 500, *_THOUSANDS)
_LONG_STREAM = 100
_COLUMNS = (
    Column("forgetting", "forgetting", numbers.fraction),
    Column("backward_transfer", "backward transfer", numbers.signed),
    Column("forward_transfer", "forward transfer", numbers.signed),
    Column("stability_gap", "stability gap", numbers.signed),
    Column("bytes", "stored", numbers.byte_size),
    Column("seconds", "training", numbers.duration),
)

Accuracies = dict[int, float]


def summary_table(groups: Sequence[Group]) -> Table:
    """Make one row per group, with accuracy after 10, 50, 100 .. tasks; 1, 2, 5 .. on short streams."""
    accuracies = [[accuracy_by_tasks(run) for run in group.runs] for group in groups]
    milestones = _milestones({tasks for runs in accuracies for run in runs for tasks in run})
    columns = measured_columns(groups, _COLUMNS)
    rows = [
        [
            *first_cells(group),
            *_milestone_cells(runs, milestones),
            *_final_cells(group),
            *mean_cells(group, columns),
        ]
        for group, runs in zip(groups, accuracies, strict=True)
    ]
    after = [f"after {tasks:,} task{'s' * (tasks > 1)}" for tasks in milestones]
    titles = [column.title for column in columns]
    head = ["method", "seeds", *after, "average accuracy", "interval", *titles]
    return Table("Summary", head, rows, _note(groups))


def _note(groups: Sequence[Group]) -> str:
    counts = {len(group.values("average_accuracy")) for group in groups}
    return (
        "After N tasks: accuracy over the N tasks learned by then. Average accuracy: the same at the "
        f"end of the run. Its interval: {describe_intervals(counts)}. Other numbers: means over seeds."
    )


def accuracy_by_tasks(run: LoadedRun) -> Accuracies:
    """Return accuracy over all tasks so far, by the number of tasks learned."""
    found = curve(run.rows)
    measured = ~np.isnan(found.accuracy)
    tasks = (found.learned + 1)[measured].tolist()
    return dict(zip(tasks, found.accuracy[measured].tolist(), strict=True))


def _milestones(measured: set[int]) -> list[int]:
    long = max(measured, default=0) >= _LONG_STREAM
    chosen = _LONG_MILESTONES if long else _SHORT_MILESTONES
    return [tasks for tasks in chosen if tasks in measured]


def _milestone_cells(runs: Sequence[Accuracies], milestones: Sequence[int]) -> list[str]:
    found = [[run[tasks] for run in runs if tasks in run] for tasks in milestones]
    return [
        numbers.fraction(sum(values) / len(values)) if values else numbers.MISSING
        for values in found
    ]


def _final_cells(group: Group) -> list[str]:
    values = list(group.values("average_accuracy").values())
    if not values:
        return [numbers.MISSING, numbers.MISSING]
    mean, low, high = (float(end[0]) for end in interval_over_seeds(np.array(values)[:, None]))
    if len(values) == 1:
        # A mean over tasks of different sizes need not equal the pooled fraction.
        low = min(mean, *group.values("accuracy_low").values())
        high = max(mean, *group.values("accuracy_high").values())
    return [numbers.fraction(mean), f"{numbers.fraction(low)} to {numbers.fraction(high)}"]
