"""Figure 3: VASE and CCI-VAE on five environments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings
from everlearn.experiments.vase.scores import environments_found, latents_used, score_cell
from everlearn.experiments.vase.sequence_figures import draw_sequence, run_and_traverse
from everlearn.experiments.vase.trials import CCI_VAE, FIVE_SEEDS, SEQUENCE_B, VASE, paper_seeds
from everlearn.experiments.vase.verdicts import judge_change, judge_environments
from everlearn.metrics.environments import InferredEnvironments
from everlearn.report import Group, LoadedRun, Table
from everlearn.report.experiment import ExperimentResult
from everlearn.report.tables.numbers import MISSING

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "VASE on five environments"
SOURCE = "Achille et al. 2018, Figure 3"
CLAIM = "VASE infers environments without labels or task boundaries, and keeps earlier ones."
COST = {SMALL: "1 minute", PAPER: "12 minutes, with MNIST and Fashion-MNIST"}
MEASUREMENT = "vase-fig3-latents"
MEASUREMENTS = (MEASUREMENT,)
_NOTE = (
    "Batches: batches of each new environment until VASE opened one for it, – where it did not. False: "
    "environments opened where none began."
)


def _settings(scale: str) -> Settings:
    vase = SEQUENCE_B[scale].ablation(VASE, seeds=paper_seeds(scale, FIVE_SEEDS))
    return Settings((vase, SEQUENCE_B[scale].ablation(CCI_VAE)))


SETTINGS = {scale: _settings(scale) for scale in (SMALL, PAPER)}


def run(runner: Runner) -> None:
    """Run both trials if their data are there, and draw latent traversals."""
    run_and_traverse(runner, runner.settings(SETTINGS).trials, MEASUREMENT)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Draw probes, inferred environments, latents by environment, and traversals."""
    return draw_sequence(results, SETTINGS, MEASUREMENT, (judge_environments, judge_change), _table)


def _table(groups: Sequence[Group]) -> Table:
    """Tabulate the environments that each seed opened, and when."""
    rows = [
        _cells(run, inferred)
        for run in runs_of(groups)
        if (inferred := environments_found(run)) is not None
    ]
    head = ["seed", "environments", "batches", "false", "latents", "change of accuracy, points"]
    return Table("Inferred environments", head, rows, _NOTE)


def _cells(run: LoadedRun, inferred: InferredEnvironments) -> list[str]:
    delays = [MISSING if np.isnan(delay) else f"{delay:.0f}" for delay in inferred.delays]
    count = latents_used(run)
    return [
        str(run.seed),
        f"{inferred.opened} of {inferred.true}",
        ", ".join(delays),
        str(inferred.false),
        MISSING if count is None else str(count),
        score_cell(Group(run.label, run.method, [run]), "accuracy_change"),
    ]
