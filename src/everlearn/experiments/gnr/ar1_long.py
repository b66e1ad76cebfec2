"""AR1 and its variants on the long stream of new classes, beside regularisation and replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlearn.experiments.framework.groups import accuracy_figures
from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.shared_trials import (
    AR1_STAR,
    DCL_PLUS,
    EWC,
    FINE_TUNING,
    LATENT_REPLAY,
    LWF,
    MIDDLE_BUFFER,
    SI,
    TABLE_TASKS,
    replay,
)
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings
from everlearn.experiments.gnr.long import report_accuracies
from everlearn.experiments.gnr.trials import AR1_FREE, AR1_STAR_FORMER
from everlearn.report.experiment import ExperimentResult

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "AR1 on the long stream"
SOURCE = "ours"
CLAIM = (
    "AR1 was published on tens of experiences; here it learns hundreds, beside standard baselines."
)
_BASELINES = (LWF, EWC, SI, FINE_TUNING)
SETTINGS = {
    SMALL: Settings(
        (DCL_PLUS, replay(MIDDLE_BUFFER[SMALL]), AR1_FREE[SMALL], *_BASELINES), {"tasks": 5}
    ),
    PAPER: Settings(
        (
            DCL_PLUS,
            replay(MIDDLE_BUFFER[PAPER]),
            AR1_FREE[PAPER],
            LATENT_REPLAY,
            AR1_STAR,
            AR1_STAR_FORMER,
            *_BASELINES,
        ),
        {"tasks": TABLE_TASKS},
    ),
}
COST = {SMALL: "seconds after the overview", PAPER: "40 minutes after the overview"}
_NOTE = (
    "AR1 and latent replay start from an extractor pre-trained on 500 other shapes; DCL+ is trained on the "
    "true affine map of every image; the other methods start from random weights. Accuracies are means "
    "over the seeds that were tested then; the figure is of the longest runs."
)
_PAPER_NOTE = (
    "AR1*free, and AR1* with its former settings, have one run each, of seed 0 and older code."
)


def run(runner: Runner) -> None:
    """Run all trials."""
    runner.run_trials(runner.settings(SETTINGS).trials)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Draw one curve per method."""
    settings = results.settings(SETTINGS)
    trials = settings.trials
    tasks = settings.options["tasks"]
    groups = results.groups(trials)
    compared = results.groups(trials, tasks)
    return ExperimentResult(
        accuracy_figures(groups, "ar1", "Accuracy on the tests of all tasks so far."),
        verdicts=[report_accuracies(compared, tasks)],
        runs=runs_of(compared),
        missing=results.missing(trials),
        note=results.note(_NOTE, _PAPER_NOTE),
    )
