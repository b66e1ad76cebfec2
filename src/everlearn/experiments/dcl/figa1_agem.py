"""Figure A1: A-GEM, whose steps never increase the loss on a few old images, beside DCL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlearn.experiments.framework.groups import accuracy_after, accuracy_figures
from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.shared_trials import AGEM, DCL, DCL_PLUS, FINE_TUNING
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings
from everlearn.experiments.framework.verdicts import format_values, judge_claim
from everlearn.report.experiment import ExperimentResult

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "A-GEM"
SOURCE = "Figure A1"
CLAIM = "A-GEM is far below DCL over 50 tasks."
_TRIALS = (DCL_PLUS, DCL, AGEM, FINE_TUNING)
SETTINGS = {SMALL: Settings(_TRIALS, {"tasks": 5}), PAPER: Settings(_TRIALS, {"tasks": 50})}
COST = {SMALL: "1 minute", PAPER: "11 minutes"}


def run(runner: Runner) -> None:
    """Run all trials."""
    runner.run_trials(runner.settings(SETTINGS).trials)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Draw accuracy of all methods."""
    tasks = results.settings(SETTINGS).options["tasks"]
    groups = results.groups(_TRIALS)
    accuracies = {group.label: accuracy_after(group, tasks) for group in groups}
    agem = accuracies.get(AGEM.title)
    dcl = accuracies.get(DCL.title)
    holds = None if agem is None or dcl is None else agem < dcl - 0.3
    claim = f"After {tasks} tasks A-GEM is far below DCL"
    return ExperimentResult(
        accuracy_figures(groups, "figA1", "Accuracy on all tasks so far."),
        verdicts=[judge_claim(claim, format_values(accuracies), holds)],
        runs=runs_of(groups),
        missing=results.missing(_TRIALS),
    )
