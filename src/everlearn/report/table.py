"""The comparison as tables of cells: accuracy, classes beyond those learned, cost, and pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from everlearn.report import numbers
from everlearn.report.groups import Group
from everlearn.report.pairs import PAIR_HEAD, PAIR_NOTE, pair_cells
from everlearn.report.spread import describe, over_seeds


class Table(NamedTuple):
    """Words in rows and columns; the first column names a method, the others hold numbers."""

    title: str
    head: list[str]
    rows: list[list[str]]
    note: str


class Column(NamedTuple):
    """A number of the summary: its name there, its title, how it is written."""

    name: str
    title: str
    words: Callable[[float], str]


ACCURACY = (
    Column("forgetting", "forgetting", numbers.share),
    Column("backward_transfer", "backward transfer", numbers.change),
    Column("forward_transfer", "forward transfer", numbers.change),
    Column("learning_accuracy", "learning accuracy", numbers.share),
    Column("within_accuracy", "within the task", numbers.share),
    Column("min_accuracy", "min accuracy", numbers.share),
    Column("worst_case_accuracy", "worst-case accuracy", numbers.share),
    Column("theta_rmse", "map error", numbers.share),
)
OPEN_SET = (
    Column("open_set_auroc", "open-set AUROC", numbers.share),
    Column("open_set_oscr", "OSCR", numbers.share),
    Column("open_set_fpr_at_95_tpr", "FPR at 95 % TPR", numbers.share),
    Column("open_set_average_precision", "open-set AP", numbers.share),
)
COST = (
    Column("bytes", "stored", numbers.size),
    Column("parameters", "parameters", numbers.whole),
    Column("steps", "steps", numbers.whole),
    Column("images_per_second", "images/s", numbers.whole),
    Column("seconds", "learning", numbers.seconds),
    Column("evaluation_seconds", "evaluating", numbers.seconds),
    Column("peak_memory", "peak memory", numbers.size),
)
_ONE_SHOT = "one_shot_"
_MEANS = "Means over the seeds that measured them."


def make_tables(groups: Sequence[Group]) -> list[Table]:
    """Make the tables that have a number in them; columns without any are left out."""
    beyond = [*_one_shot_columns(groups), *OPEN_SET]
    tables = [
        _accuracy(groups),
        _plain("One shot and open set", groups, beyond, _MEANS),
        _plain("Cost", groups, COST, _MEANS),
        Table("Paired differences", PAIR_HEAD, pair_cells(groups), PAIR_NOTE),
    ]
    return [table for table in tables if table.rows]


def _accuracy(groups: Sequence[Group]) -> Table:
    columns = _measured(groups, ACCURACY)
    head = ["method", "seeds", "average accuracy", "interval", *(c.title for c in columns)]
    rows = [[*_first(group), *_accuracy_cells(group), *_cells(group, columns)] for group in groups]
    counts = {len(group.values("average_accuracy")) for group in groups}
    return Table(
        "Accuracy",
        head,
        rows,
        f"Intervals: {describe(counts)}. Other numbers: means over the seeds.",
    )


def _accuracy_cells(group: Group) -> list[str]:
    values = list(group.values("average_accuracy").values())
    if not values:
        return [numbers.NONE, numbers.NONE]
    mean, low, high = (float(end[0]) for end in over_seeds(np.array(values)[:, None]))
    if len(values) == 1:
        # A mean over tasks of different sizes need not be the pooled share.
        low = min(mean, *group.values("accuracy_low").values())
        high = max(mean, *group.values("accuracy_high").values())
    return [numbers.share(mean), f"{numbers.share(low)} to {numbers.share(high)}"]


def _plain(title: str, groups: Sequence[Group], every: Sequence[Column], note: str) -> Table:
    columns = _measured(groups, every)
    some = [group for group in groups if any(group.values(column.name) for column in columns)]
    rows = [[*_first(group), *_cells(group, columns)] for group in some]
    return Table(title, ["method", "seeds", *(c.title for c in columns)], rows, note)


def _measured(groups: Sequence[Group], columns: Sequence[Column]) -> list[Column]:
    return [c for c in columns if any(group.values(c.name) for group in groups)]


def _first(group: Group) -> list[str]:
    return [group.label, str(len(group.runs))]


def _cells(group: Group, columns: Sequence[Column]) -> list[str]:
    found = [list(group.values(column.name).values()) for column in columns]
    return [
        column.words(sum(values) / len(values)) if values else numbers.NONE
        for column, values in zip(columns, found, strict=True)
    ]


def _one_shot_columns(groups: Sequence[Group]) -> list[Column]:
    """One column a way of testing: one_shot_standard_grid_10 is "10 new classes, standard, grid"."""
    names = {name for group in groups for run in group.runs for name in run.summary}
    kept = [name.removeprefix(_ONE_SHOT).split("_") for name in names if name.startswith(_ONE_SHOT)]
    ordered = sorted(kept, key=lambda words: (int(words[2]), words[0] != "standard", words[1]))
    return [
        Column(
            _ONE_SHOT + "_".join(words), f"{words[2]} new, {words[0]}, {words[1]}", numbers.share
        )
        for words in ordered
    ]
