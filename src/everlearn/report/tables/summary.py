"""The summary table: accuracy after milestones of the stream, forgetting, transfer and cost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from everlearn.metrics import LEARNED, explain_missing, mean_or_none
from everlearn.report.tables import numbers
from everlearn.report.tables.groups import Accuracies, Group, accuracy_by_tasks
from everlearn.report.tables.intervals import describe_intervals, interval_over_seeds
from everlearn.report.tables.protocol import did_not_learn
from everlearn.report.tables.table import Column, Table, first_cells, mean_cells, measured_columns

# Numbers of tasks learned.
_SHORT_MILESTONES = (1, 2, 5, 10, 20, 50)
_THOUSANDS = tuple(digit * 10**power for power in range(3, 9) for digit in (1, 2, 5))
_LONG_MILESTONES = (10, 50, 100, 200, 500, *_THOUSANDS)
_LONG_STREAM = 100
_COLUMNS = (
    Column("learning_accuracy", "learning accuracy", numbers.fraction),
    Column("forgetting", "forgetting", numbers.fraction),
    Column("backward_transfer", "backward transfer", numbers.signed),
    Column("forward_transfer", "forward transfer", numbers.signed),
    Column("stability_gap", "stability gap", numbers.signed),
    Column("bytes", "stored", numbers.byte_size),
    Column("seconds", "training", numbers.duration),
)
# Columns with blank cells that need a reason, by their names in a summary.
_EXPLAINED = {
    "learning_accuracy": "learning accuracy",
    "forgetting": "forgetting",
    "forward_transfer": "forward transfer",
}


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
    sentences = [
        "After N tasks: accuracy over the N tasks learned by then. Average accuracy: the same at the "
        f"end of the run. Its interval: {describe_intervals(counts)}. Other numbers: means over seeds.",
        *_name_validation(groups),
        *_name_not_learned(groups),
        *_explain_blanks(groups),
    ]
    return " ".join(sentences)


def _name_validation(groups: Sequence[Group]) -> list[str]:
    """Say that the numbers are for choosing settings, if they are of validation images."""
    validation = any(run.split == "val" for group in groups for run in group.runs)
    return ["All numbers are of validation images: they choose settings."] if validation else []


def _name_not_learned(groups: Sequence[Group]) -> list[str]:
    """List the groups that did not learn their tasks."""
    labels = [group.label for group in groups if did_not_learn(group)]
    if not labels:
        return []
    return [f"Did not learn their tasks (learning accuracy below {LEARNED}): {', '.join(labels)}."]


def _explain_blanks(groups: Sequence[Group]) -> list[str]:
    """Say why learning accuracy or forgetting is blank, and forward transfer where others have it."""
    labels: dict[tuple[str, str], list[str]] = {}
    for group in groups:
        blank = [name for name in _EXPLAINED if not group.values(name)]
        reasons = explain_missing(group.runs[0].rows, group.runs[0].costs) if blank else {}
        for name in blank:
            if name != "forward_transfer" or any(other.values(name) for other in groups):
                labels.setdefault((_EXPLAINED[name], reasons[name]), []).append(group.label)
    return [f"No {title} of {', '.join(of)}: {reason}." for (title, reason), of in labels.items()]


def _milestones(measured: set[int]) -> list[int]:
    long = max(measured, default=0) >= _LONG_STREAM
    chosen = _LONG_MILESTONES if long else _SHORT_MILESTONES
    return [tasks for tasks in chosen if tasks in measured]


def _milestone_cells(runs: Sequence[Accuracies], milestones: Sequence[int]) -> list[str]:
    means = [mean_or_none([run[n] for run in runs if n in run]) for n in milestones]
    return [numbers.MISSING if mean is None else numbers.fraction(mean) for mean in means]


def _final_cells(group: Group) -> list[str]:
    values = list(group.values("average_accuracy").values())
    if not values:
        return [numbers.MISSING, numbers.MISSING]
    mean, low, high = (float(end[0]) for end in interval_over_seeds(np.array(values)[:, None]))
    if len(values) == 1:
        # A mean over tasks of different sizes need not equal the pooled fraction.
        low = min(mean, *group.values("accuracy_low").values())
        high = max(mean, *group.values("accuracy_high").values())
    ends = (numbers.fraction(end) for end in (max(low, 0.0), min(high, 1.0)))
    return [numbers.fraction(mean), " to ".join(ends)]
