"""New classes (NC): all replay modes on a stream where every experience brings new classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlearn.experiments.framework.results_folder import ResultsFolder
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings
from everlearn.experiments.gnr.modes import compare_modes
from everlearn.experiments.gnr.trials import AR1, NC
from everlearn.report.experiment import ExperimentResult
from everlearn.report.tables.numbers import MISSING

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "Negative replay, new classes"
SOURCE = "Graffieti et al. 2022"
CLAIM = (
    "Generated latents are too poor to teach old classes, but as negatives they keep new classes from "
    "crowding out old ones."
)
SETTINGS = {scale: Settings(NC[scale].trials()) for scale in (SMALL, PAPER)}
COST = {SMALL: "1 minute", PAPER: "10 minutes, with the extractor"}
# Accuracy at the end, and mean over experiences.
PUBLISHED = {
    AR1: ("0.610 ± 0.005", "0.417 ± 0.006"),
    "PR-OD": ("above 0.70", "0.470 ± 0.005"),
    "NR-OD": ("0.686 ± 0.014", MISSING),
    "PR-GD": ("below AR1*", "0.341 ± 0.003"),
    "NR-GD": ("0.689 ± 0.009", "0.446 ± 0.008"),
    "NR-RD": ("0.641 ± 0.007", MISSING),
}


def run(runner: Runner) -> None:
    """Run all trials."""
    runner.run_trials(runner.settings(SETTINGS).trials)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Draw accuracy of all modes, and tabulate final accuracies."""
    return compare_modes(results, results.settings(SETTINGS).trials, "gnr-nc", PUBLISHED)
