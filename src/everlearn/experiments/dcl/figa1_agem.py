"""Figure A1: A-GEM, whose steps never increase the loss on a few old images, beside DCL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlearn.experiments.framework.groups import accuracy_figures, values_after
from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.rule import lead_over
from everlearn.experiments.framework.shared_trials import (
    AGEM,
    DCL,
    DCL_PLUS,
    FINE_TUNING,
)
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings
from everlearn.experiments.framework.verdicts import format_means, judge_statement
from everlearn.report.experiment import ExperimentResult

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "A-GEM"
SOURCE = "Figure A1"
CLAIM = "A-GEM is far below DCL over 50 tasks."
_TRIALS = (DCL_PLUS, DCL, AGEM, FINE_TUNING)
SETTINGS = {
    SMALL: Settings(_TRIALS, {"tasks": 5}),
    PAPER: Settings(_TRIALS, {"tasks": 50}),
}
COST = {SMALL: "1 minute", PAPER: "30 minutes"}
_FAR = 0.3  # difference of accuracies


def run(runner: Runner) -> None:
    """Run all trials."""
    runner.run_trials(runner.settings(SETTINGS).trials)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Draw accuracy of all methods."""
    settings = results.settings(SETTINGS)
    tasks = settings.options["tasks"]
    groups = results.groups(settings.trials)
    compared = results.groups(settings.trials, tasks)
    values = {group.label: values_after(group, tasks) for group in compared}
    lead = lead_over(values.get(DCL.title, {}), values.get(AGEM.title, {}), _FAR)
    verdict = judge_statement(
        f"After {tasks} tasks A-GEM is far below DCL",
        format_means(values),
        [lead],
        f"by more than {_FAR}",
    )
    return ExperimentResult(
        accuracy_figures(groups, "figA1", "Accuracy on all tasks so far."),
        verdicts=[verdict],
        runs=runs_of(compared),
        missing=results.missing(settings.trials),
    )
