"""The comparison in tables: summary, accuracy, classes beyond those learned, cost, and pairs."""

from __future__ import annotations

from collections.abc import Sequence

from everlearn.report import numbers
from everlearn.report.groups import Group
from everlearn.report.milestones import summary_table
from everlearn.report.pairs import PAIR_HEAD, PAIR_NOTE, pair_cells
from everlearn.report.table import Column, Table, group_table

# What stands in the summary does not stand here again.
ACCURACY = (
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
    Column("parameters", "parameters", numbers.whole),
    Column("steps", "steps", numbers.whole),
    Column("images_per_second", "images/s", numbers.whole),
    Column("evaluation_seconds", "evaluating", numbers.seconds),
    Column("peak_memory", "peak memory", numbers.size),
)
_ONE_SHOT = "one_shot_"
_MEANS = "Means over the seeds that measured them."


def make_tables(groups: Sequence[Group]) -> list[Table]:
    """Make the tables that have a number in them."""
    beyond = [*_one_shot_columns(groups), *OPEN_SET]
    tables = [
        summary_table(groups),
        group_table("Accuracy", groups, ACCURACY, _MEANS),
        group_table("One shot and open set", groups, beyond, _MEANS),
        group_table("Cost", groups, COST, _MEANS),
        Table("Paired differences", PAIR_HEAD, pair_cells(groups), PAIR_NOTE),
    ]
    return [table for table in tables if table.rows]


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
