"""New instances and classes (NIC): all replay modes where an experience is one class in one session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlearn.experiments.framework.results_folder import ResultsFolder
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings
from everlearn.experiments.gnr.modes import compare_modes
from everlearn.experiments.gnr.trials import AR1, NIC
from everlearn.report.experiment import ExperimentResult
from everlearn.report.tables.numbers import MISSING

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "Negative replay, new instances and classes"
SOURCE = "Graffieti et al. 2022"
CLAIM = "Where an experience is one class in one session, positive replay of generated latents does harm."
SETTINGS = {scale: Settings(NIC[scale].trials()) for scale in (SMALL, PAPER)}
COST = {SMALL: "1 minute", PAPER: "12 minutes, with the extractor"}
# Accuracy at the end; means over experiences were not published.
PUBLISHED = {
    AR1: ("0.527 ± 0.010", MISSING),
    "PR-OD": ("less than 0.05 over NR-GD", MISSING),
    "NR-OD": ("0.679 ± 0.003", MISSING),
    "PR-GD": ("about 0.30 below AR1*", MISSING),
    "NR-GD": ("0.615 ± 0.007", MISSING),
    "NR-RD": ("0.589 ± 0.006", MISSING),
}


def run(runner: Runner) -> None:
    """Run all trials."""
    runner.run_trials(runner.settings(SETTINGS).trials)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Draw accuracy of all modes, and tabulate final accuracies."""
    return compare_modes(results, results.settings(SETTINGS).trials, "gnr-nic", PUBLISHED)
