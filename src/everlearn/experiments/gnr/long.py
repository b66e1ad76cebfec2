"""Generative replay over hundreds of experiences: its accuracy, and the cost of each experience."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from everlearn.experiments.framework.groups import (
    accuracy_figures,
    final_accuracy,
    format_number,
    name_early_seeds,
)
from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.shared_trials import (
    DCL,
    DCL_PLUS,
    MIDDLE_BUFFER,
    TABLE_TASKS,
    replay,
)
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings
from everlearn.experiments.framework.verdicts import format_values, unpublished
from everlearn.experiments.gnr.modes import style_by_mode
from everlearn.experiments.gnr.trials import AR1_FREE, BIR, GNR, GNR_NONE, GNR_POSITIVE, NEGATIVE
from everlearn.report import Group, Table
from everlearn.report.experiment import ExperimentResult
from everlearn.report.tables.numbers import MISSING, byte_size
from everlearn.report.verdict import Verdict
from everlearn.rows import TaskRow, of_kind

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "Generative replay over hundreds of tasks"
SOURCE = "ours"
CLAIM = "It was not known whether a generator that learns from its own output lasts for hundreds of tasks."
SETTINGS = {
    SMALL: Settings(
        (DCL_PLUS, DCL, replay(MIDDLE_BUFFER[SMALL]), AR1_FREE[SMALL], GNR[SMALL]), {"tasks": (5,)}
    ),
    PAPER: Settings(
        (
            DCL_PLUS, DCL, replay(20_000), replay(MIDDLE_BUFFER[PAPER]), AR1_FREE[PAPER], GNR[PAPER],
            GNR_POSITIVE, GNR_NONE, NEGATIVE, BIR,
        ),
        {"tasks": (100, TABLE_TASKS)},  # that all have learned, and all but two
    ),
}  # fmt: skip
COST = {SMALL: "seconds after the overview", PAPER: "1 hour after the overview"}
_NOTE = (
    "GNR and AR1*free start from an extractor pre-trained on 500 other shapes; DCL and DCL+ are trained on "
    "the true affine map of every image; the others start from random weights. Accuracies are means over "
    "the seeds that were tested then; the figure and the costs are of the longest runs."
)
_PAPER_NOTE = (
    "BIR and negative replay learn 100 tasks, GNR as positives 200. These two, GNR and AR1*free have one "
    "run each, of seed 0 and older code, without learning accuracy; BIR is a fully connected net, which "
    "does not learn from these pixels."
)


def run(runner: Runner) -> None:
    """Run all trials."""
    runner.run_trials(runner.settings(SETTINGS).trials)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Draw one curve per method, and tabulate how the cost of a task changes."""
    settings = results.settings(SETTINGS)
    trials = settings.trials
    groups = results.groups(trials)
    compared = {tasks: results.groups(trials, tasks) for tasks in settings.options["tasks"]}
    caption = "Accuracy on the tests of all tasks so far."
    return ExperimentResult(
        accuracy_figures(style_by_mode(groups), "gnr-long", caption),
        tables=[_cost_table(groups)] if groups else [],
        verdicts=[report_accuracies(found, tasks) for tasks, found in compared.items()],
        runs=runs_of(next(iter(compared.values()))),
        missing=results.missing(trials),
        note=results.note(_NOTE, _PAPER_NOTE),
    )


def report_accuracies(groups: Sequence[Group], tasks: int) -> Verdict:
    """Report the accuracies of runs that were cut after as many tasks."""
    ours = format_values({name_early_seeds(group): final_accuracy(group) for group in groups})
    return unpublished(f"Accuracy after {tasks} tasks", ours)


def _cost_table(groups: Sequence[Group]) -> Table:
    rows = []
    for group in groups:
        first, last = task_seconds(group)
        ratio = last / first if first and last else None
        stored = group.mean("bytes")
        rows.append(
            [
                group.label,
                str(group.runs[0].summary["tasks"]),
                format_number(ratio, digits=2),
                MISSING if stored is None else byte_size(stored),
            ]
        )
    head = ["method", "tasks", "last over first", "stored at the end"]
    note = (
        "Last over first: seconds of training per task in the last tenth of the tasks over those in the "
        "first tenth, without the very first task. Some runs shared a GPU with others that ended earlier "
        "or later, so these ratios do not tell how the cost of a method changes."
    )
    return Table("Cost of a task", head, rows, note)


def task_seconds(group: Group) -> tuple[float | None, float | None]:
    """Return the mean seconds of a task in the first tenth, without the first task, and in the last.

    Only the first seed counts.
    """
    rows = sorted(of_kind(group.runs[0].costs, TaskRow), key=lambda row: row["learned"])
    seconds = [row["seconds"] for row in rows][1:]
    if not seconds:
        return None, None
    tenth = max(1, (len(seconds) + 1) // 10)
    return sum(seconds[:tenth]) / tenth, sum(seconds[-tenth:]) / tenth
