"""Figure 8: DCL online and offline, with one, three and five epochs per task."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from everlearn.experiments.framework.groups import (
    accuracy_figures,
    final_accuracy,
    final_values,
    values_by_title,
)
from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.rule import lead_above, lead_over
from everlearn.experiments.framework.shared_trials import DCL, DCL_PLUS, SEEDS, TABLE_TASKS
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings, Trial
from everlearn.experiments.framework.verdicts import (
    format_means,
    format_values,
    judge_statement,
    unpublished,
)
from everlearn.metrics import curve
from everlearn.report import LoadedRun
from everlearn.report.experiment import ExperimentResult

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "Online and offline"
SOURCE = "Figure 8"
CLAIM = (
    "The accuracy of DCL rises with one, three and five epochs per task; with more it ends higher."
)
_ONLINE = Trial(
    "dcl-online",
    "dcl",
    {"epochs": 1},
    {"online": True},
    max_tasks=TABLE_TASKS,
    seeds=SEEDS,
    label="DCL, 1 epoch",
)
_THREE = _ONLINE._replace(name="dcl-3", settings={"epochs": 3}, stream={}, label="DCL, 3 epochs")
_EPOCHS = (_ONLINE, _THREE, DCL)
_PLUS = _ONLINE._replace(name="dcl-plus-online", method="dcl-plus", label="DCL+, 1 epoch")
_TRIALS = (*_EPOCHS, _PLUS, DCL_PLUS)
SETTINGS = {SMALL: Settings(_TRIALS), PAPER: Settings(_TRIALS)}
COST = {SMALL: "1 minute", PAPER: "25 minutes"}


def run(runner: Runner) -> None:
    """Run all trials; the online stream refuses a second epoch."""
    runner.run_trials(runner.settings(SETTINGS).trials)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Draw one curve per number of epochs."""
    trials = results.settings(SETTINGS).trials
    groups = results.groups(trials)
    dcl = results.groups(_EPOCHS, TABLE_TASKS)
    ends = values_by_title(_EPOCHS, {group.label: final_values(group) for group in dcl})
    rises = values_by_title(
        _EPOCHS, {group.label: {run.seed: _rise(run) for run in group.runs} for group in dcl}
    )
    plus = {group.label: final_accuracy(group) for group in results.groups([_PLUS])}
    verdicts = [
        judge_statement(
            "More epochs end higher",
            format_values({group.label: final_accuracy(group) for group in dcl}),
            [lead_over(more, fewer) for fewer, more in pairwise(ends.values())],
            f"accuracy after {TABLE_TASKS} tasks",
            [f"{more} over {fewer}" for fewer, more in pairwise(ends)],
        ),
        judge_statement(
            "Accuracy rises with any number of epochs",
            format_means(rises),
            [lead_above(values, 0.0) for values in rises.values()],
            f"accuracy after {TABLE_TASKS} tasks minus the first one",
            list(rises),
        ),
        unpublished("DCL+ with one epoch", format_values(plus)),
    ]
    return ExperimentResult(
        accuracy_figures(groups, "fig8", "Accuracy on all tasks so far."),
        verdicts=verdicts,
        runs=runs_of(results.groups(trials, TABLE_TASKS)),
        missing=results.missing(trials),
    )


def _rise(run: LoadedRun) -> float:
    """Return the last accuracy minus the first."""
    accuracy = curve(run.rows).accuracy
    return float(accuracy[-1] - accuracy[0])
