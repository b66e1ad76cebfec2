"""Figure 8: DCL online and offline, with one, three and five epochs per task."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from everlearn.experiments.framework.groups import accuracy_figures, final_accuracy
from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.shared_trials import DCL, DCL_PLUS
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings, Trial
from everlearn.experiments.framework.verdicts import format_values, judge_claim, unpublished
from everlearn.metrics import curve
from everlearn.report import Group
from everlearn.report.experiment import ExperimentResult

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "Online and offline"
SOURCE = "Figure 8"
CLAIM = (
    "The accuracy of DCL rises with one, three and five epochs per task; with more it ends higher."
)
_EPOCHS = (
    Trial("dcl-online", "dcl", {"epochs": 1}, {"online": True}, label="DCL, 1 epoch"),
    Trial("dcl-3", "dcl", {"epochs": 3}, label="DCL, 3 epochs"),
    DCL,
)
_PLUS = Trial("dcl-plus-online", "dcl-plus", {"epochs": 1}, {"online": True}, label="DCL+, 1 epoch")
SETTINGS = dict.fromkeys((SMALL, PAPER), Settings((*_EPOCHS, _PLUS, DCL_PLUS)))
COST = {SMALL: "1 minute", PAPER: "8 minutes"}


def run(runner: Runner) -> None:
    """Run all trials; the online stream refuses a second epoch."""
    runner.run_trials(runner.settings(SETTINGS).trials)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Draw one curve per number of epochs."""
    trials = results.settings(SETTINGS).trials
    groups = results.groups(trials)
    dcl = results.groups(_EPOCHS)
    complete = len(dcl) == len(_EPOCHS)
    final = {group.label: final_accuracy(group) for group in dcl}
    ordered = all(fewer <= more + 0.01 for fewer, more in pairwise(final.values()))
    rises = {group.label: _rise(group) for group in dcl}
    plus = {group.label: final_accuracy(group) for group in results.groups([_PLUS])}
    verdicts = [
        judge_claim("More epochs end higher", format_values(final), ordered if complete else None),
        judge_claim(
            "Accuracy rises with any number of epochs",
            format_values(rises),
            all(rise > 0 for rise in rises.values()) if complete else None,
            "last accuracy minus first accuracy",
        ),
        unpublished("DCL+ with one epoch", format_values(plus)),
    ]
    return ExperimentResult(
        accuracy_figures(groups, "fig8", "Accuracy on all tasks so far."),
        verdicts=verdicts,
        runs=runs_of(groups),
        missing=results.missing(trials),
    )


def _rise(group: Group) -> float:
    """Return the last accuracy minus the first."""
    accuracy = curve(group.runs[0].rows).accuracy
    return float(accuracy[-1] - accuracy[0])
