"""AR1 and its variants on the long stream of new classes, beside regularisation and replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlearn.experiments.framework.groups import accuracy_figures, final_accuracy
from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.shared_trials import (
    DCL_PLUS,
    EWC,
    FINE_TUNING,
    LWF,
    MIDDLE_BUFFER,
    SI,
    replay,
)
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings
from everlearn.experiments.framework.verdicts import format_values, unpublished
from everlearn.experiments.gnr.trials import AR1_FREE, AR1_STAR, LATENT_REPLAY
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
    SMALL: Settings((DCL_PLUS, replay(MIDDLE_BUFFER[SMALL]), AR1_FREE[SMALL], *_BASELINES)),
    PAPER: Settings(
        (
            DCL_PLUS,
            replay(MIDDLE_BUFFER[PAPER]),
            AR1_FREE[PAPER],
            LATENT_REPLAY,
            AR1_STAR,
            *_BASELINES,
        )
    ),
}
COST = {SMALL: "seconds after the overview", PAPER: "40 minutes after the overview"}
_NOTE = (
    "AR1 and latent replay start from an extractor pre-trained on 500 other shapes; DCL+ is trained on the "
    "true affine map of every image; the other methods start from random weights."
)


def run(runner: Runner) -> None:
    """Run all trials."""
    runner.run_trials(runner.settings(SETTINGS).trials)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Draw one curve per method."""
    trials = results.settings(SETTINGS).trials
    groups = results.groups(trials)
    final = format_values({group.label: final_accuracy(group) for group in groups})
    return ExperimentResult(
        accuracy_figures(groups, "ar1", "Accuracy on the tests of all tasks so far."),
        verdicts=[unpublished("Accuracy at the end", final)],
        runs=runs_of(groups),
        missing=results.missing(trials),
        note=_NOTE,
    )
