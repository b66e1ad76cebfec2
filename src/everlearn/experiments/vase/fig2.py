"""Figure 2: VASE and CCI-VAE on three environments, and the latents that environments share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlearn.experiments.framework.results_folder import ResultsFolder
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings
from everlearn.experiments.vase.sequence_figures import draw_sequence, run_and_traverse
from everlearn.experiments.vase.trials import (
    CCI_VAE,
    FIVE_SEEDS,
    SEEDS,
    SEQUENCE_A,
    VASE,
    paper_seeds,
)
from everlearn.experiments.vase.verdicts import judge_change, judge_sharing
from everlearn.report.experiment import ExperimentResult

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "VASE on three environments"
SOURCE = "Achille et al. 2018, Figure 2"
CLAIM = (
    "VASE keeps what it has learned, and shares latents of position between data sets that move."
)
COST = {SMALL: "seconds after vase-table1", PAPER: "seconds after vase-table1"}
MEASUREMENT = "vase-fig2-latents"
MEASUREMENTS = (MEASUREMENT,)


def _settings(scale: str) -> Settings:
    vase = SEQUENCE_A[scale].ablation(VASE, seeds=paper_seeds(scale, FIVE_SEEDS))
    cci_vae = SEQUENCE_A[scale].ablation(CCI_VAE, seeds=paper_seeds(scale, SEEDS))
    return Settings((vase, cci_vae))


SETTINGS = {scale: _settings(scale) for scale in (SMALL, PAPER)}


def run(runner: Runner) -> None:
    """Run both trials if their data are there, and draw latent traversals."""
    run_and_traverse(runner, runner.settings(SETTINGS).trials, MEASUREMENT)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Draw probes, latents by environment, and traversals."""
    return draw_sequence(results, SETTINGS, MEASUREMENT, (judge_sharing, judge_change))
