"""EXPERIMENTS: every figure and table, one module each."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from everlearn.experiments.framework.trial import Settings, at_scale

if TYPE_CHECKING:
    from everlearn.experiments.framework.results_folder import ResultsFolder
    from everlearn.experiments.framework.runner import Runner
    from everlearn.report.experiment import ExperimentResult

_MODULES = {
    "overview": "beyond.overview",
    "fig2": "dcl.fig2_shapes",
    "fig3": "dcl.fig3_regularisation",
    "fig4": "dcl.fig4_replay",
    "fig5": "dcl.fig5_l2p",
    "fig6": "dcl.fig6_choice",
    "fig7": "dcl.fig7_invariance",
    "fig8": "dcl.fig8_online",
    "table1": "dcl.table1_one_shot",
    "fig9": "dcl.fig9_open_set",
    "fig10": "dcl.fig10_mistakes",
    "figA1": "dcl.figa1_agem",
    "figA2": "dcl.figa2_der",
    "paper-exact": "dcl.paper_exact",
    "dcl-ablations": "dcl.ablations",
    "continuous": "beyond.continuous",
    "others": "beyond.others",
    "stability": "beyond.stability",
    "separability": "beyond.separability",
    "unlearning": "beyond.unlearning",
    "million": "beyond.million",
    "scenarios": "beyond.scenarios",
    "toy": "beyond.toy",
    "cost": "beyond.cost",
    "gnr-nc": "gnr.nc",
    "gnr-nic": "gnr.nic",
    "gnr-ablation": "gnr.ablation",
    "gnr-share": "gnr.replay_fraction",
    "gnr-balance": "gnr.balance",
    "gnr-generator": "gnr.generator",
    "ar1": "gnr.ar1_long",
    "gnr-long": "gnr.long",
    "vase-table1": "vase.table1",
    "vase-fig2": "vase.fig2",
    "vase-fig3": "vase.fig3",
    "vase-fig4": "vase.fig4",
    "vase-fig5": "vase.fig5",
    "vase-disentangled": "vase.disentangled",
}


class Experiment(Protocol):
    """A module that makes one figure or table.

    Attributes:
        TITLE: heading of its section.
        SOURCE: the figure or table of a paper, or "ours".
        CLAIM: the statement that it tests.
        SETTINGS: trials and options by scale, `small` and `paper`.
        COST: time that it takes, by scale.
        MEASUREMENTS: names of the measurements it makes besides runs; a module without any leaves it out.
    """

    __name__: str
    TITLE: str
    SOURCE: str
    CLAIM: str
    SETTINGS: Mapping[str, Settings]
    COST: Mapping[str, str]

    def run(self, runner: Runner) -> None:
        """Make the runs and measurements that are missing; this needs torch."""

    def figure(self, results: ResultsFolder) -> ExperimentResult:
        """Draw figures and tables and judge the claim; this needs no torch."""


def _load(path: str) -> Experiment:
    return cast("Experiment", import_module(f"everlearn.experiments.{path}"))


EXPERIMENTS: dict[str, Experiment] = {name: _load(path) for name, path in _MODULES.items()}


def find_experiment(name: str) -> Experiment:
    """Return an experiment by its name."""
    if name not in EXPERIMENTS:
        raise ValueError(f"unknown experiment {name!r}; known: all, {', '.join(EXPERIMENTS)}")
    return EXPERIMENTS[name]


def result_names(experiment: Experiment, scale: str) -> set[str]:
    """Return the names of the runs and measurements of an experiment, which `--only` accepts."""
    trials = at_scale(experiment.SETTINGS, scale).trials
    runs = {trial.folder(seed) for trial in trials for seed in trial.seeds_at(scale)}
    return runs | set(getattr(experiment, "MEASUREMENTS", ()))
