"""The tables of a comparison: summary, accuracy, one-shot and open-set tests, cost, differences."""

from __future__ import annotations

from collections.abc import Sequence

from everlearn.report.tables import numbers
from everlearn.report.tables.groups import Group
from everlearn.report.tables.paired_differences import paired_differences
from everlearn.report.tables.summary import summary_table
from everlearn.report.tables.table import Column, Table, group_table

# The columns of the summary are not repeated here.
ACCURACY = (
    Column("within_task_accuracy", "within the task", numbers.fraction),
    Column("min_accuracy", "min accuracy", numbers.fraction),
    Column("worst_case_accuracy", "worst-case accuracy", numbers.fraction),
    Column("gap_regained", "gap regained", numbers.fraction),
    Column("gap_first_step", "gap of the first step", numbers.fraction),
    Column("theta_rmse", "map error", numbers.fraction),
)
OPEN_SET = (
    Column("open_set_auroc", "open-set AUROC", numbers.fraction),
    Column("open_set_oscr", "OSCR", numbers.fraction),
    Column("open_set_fpr_at_95_tpr", "FPR at 95 % TPR", numbers.fraction),
    Column("open_set_average_precision", "open-set AP", numbers.fraction),
)
COST = (
    Column("parameters", "parameters", numbers.integer),
    Column("steps", "steps", numbers.integer),
    Column("images_per_second", "images/s", numbers.integer),
    Column("evaluation_seconds", "evaluation", numbers.duration),
    Column("peak_memory", "peak memory", numbers.byte_size),
)
_ONE_SHOT = "one_shot_"
_NOTE = "Means over the seeds that measured them."


def make_tables(groups: Sequence[Group]) -> list[Table]:
    """Make all tables, without those that would be empty."""
    new_classes = [*_one_shot_columns(groups), *OPEN_SET]
    tables = [
        summary_table(groups),
        group_table("Accuracy", groups, ACCURACY, _NOTE),
        group_table("One shot and open set", groups, new_classes, _NOTE),
        group_table("Cost", groups, COST, _NOTE),
        paired_differences(groups),
    ]
    return [table for table in tables if table.rows]


def _one_shot_columns(groups: Sequence[Group]) -> list[Column]:
    """One column per kind of test: one_shot_standard_grid_10 is titled "10 new, standard, grid"."""
    names = {name for group in groups for run in group.runs for name in run.summary}
    tests = [
        name.removeprefix(_ONE_SHOT).split("_") for name in names if name.startswith(_ONE_SHOT)
    ]
    ordered = sorted(tests, key=lambda test: (int(test[2]), test[0] != "standard", test[1]))
    return [
        Column(
            _ONE_SHOT + "_".join((mode, factors, classes)),
            f"{classes} new, {mode}, {factors}",
            numbers.fraction,
        )
        for mode, factors, classes in ordered
    ]
