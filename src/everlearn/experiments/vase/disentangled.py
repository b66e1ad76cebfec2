"""Disentanglement metrics of codes after each environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings, Trial
from everlearn.experiments.framework.verdicts import format_values, unpublished
from everlearn.experiments.vase.panels import draw_panels
from everlearn.experiments.vase.trials import CCI_VAE, SPRITE_SEQUENCE, VASE
from everlearn.metrics.measured import Floats
from everlearn.report import Group, LoadedRun, Table
from everlearn.report.charts.accuracy_lines import Line
from everlearn.report.experiment import ExperimentResult, Figure
from everlearn.report.tables.intervals import interval_over_seeds
from everlearn.rows import DisentanglementRow, of_kind

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "Disentanglement after each environment"
SOURCE = "ours"
CLAIM = "A method that does not forget its codes keeps them as disentangled as they were."
COST = {SMALL: "20 seconds after vase-fig3", PAPER: "20 minutes"}
METRICS = {
    "mig": "MIG",
    "sap": "SAP",
    "modularity": "modularity",
    "explicitness": "explicitness",
    "disentanglement": "DCI, disentanglement",
    "completeness": "DCI, completeness",
    "informativeness": "DCI, informativeness",
    "factor_vae": "FactorVAE",
    "beta_vae": "beta-VAE score",
}
_DRAWN = ("mig", "disentanglement", "informativeness", "factor_vae")
_NOTE = (
    "Mean over all environments, on test images, after the last; mean over seeds. The codes of DCL are the "
    "six entries of its affine map, and DCL alone is trained on the true ones. Scale and orientation share "
    "four of them, so no entry encodes only one of these, while x and y have one entry each."
)


def _trials(scale: str, images: int) -> tuple[Trial, ...]:
    """Return all trials; DCL gets so many images per environment, as its net is larger."""
    sequence = SPRITE_SEQUENCE[scale]
    dcl = sequence.trial("dcl", "dcl", "DCL")
    beta_vae = sequence.trial("beta", "beta-vae", "beta-VAE")
    return (
        sequence.ablation(VASE),
        sequence.ablation(CCI_VAE),
        *([beta_vae] if scale == PAPER else []),
        dcl._replace(stream={**dcl.stream, "train": images}),
    )


SETTINGS = {SMALL: Settings(_trials(SMALL, 3200)), PAPER: Settings(_trials(PAPER, 25_600))}


def run(runner: Runner) -> None:
    """Run all trials; the metrics are part of their plan."""
    runner.run_trials(runner.settings(SETTINGS).trials)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Draw some metrics after each environment, and tabulate all at the end."""
    trials = results.settings(SETTINGS).trials
    groups = [
        group for group in results.groups(trials) if of_kind(group.runs[0].rows, DisentanglementRow)
    ]
    final = {name: {group.label: _final(group, name) for group in groups} for name in METRICS}
    return ExperimentResult(
        _figures(groups),
        tables=[_table(final, [group.label for group in groups])] if groups else [],
        verdicts=[
            unpublished(f"{METRICS[name]} at the end", format_values(final[name]))
            for name in ("mig", "disentanglement")
        ],
        runs=runs_of(groups),
        missing=results.missing(trials),
    )


def after_each(run: LoadedRun, name: str) -> Floats:
    """Return a metric after each environment (K,), mean over the environments measured then."""
    rows: list[Any] = of_kind(run.rows, DisentanglementRow)  # indexed by the name of a metric
    stages = sorted({row["learned"] for row in rows})
    return np.array([np.mean([row[name] for row in rows if row["learned"] == k]) for k in stages])


def _final(group: Group, name: str) -> float:
    return float(np.mean([after_each(run, name)[-1] for run in group.runs]))


def _figures(groups: Sequence[Group]) -> list[Figure]:
    if not groups:
        return []
    panels = {METRICS[name]: [_line(group, name) for group in groups] for name in _DRAWN}
    description = "disentanglement metrics after each environment, by method"
    svg = draw_panels(panels, "vase-disentangled", "environments learned", "mean", description)
    caption = "Metrics of the codes, mean over the environments so far; bands: over seeds."
    return [Figure(svg, caption)]


def _line(group: Group, name: str) -> Line:
    seeds = [after_each(run, name) for run in group.runs]
    count = min(map(len, seeds))
    interval = interval_over_seeds(np.stack([values[:count] for values in seeds]))
    return Line(group.label, group.method, np.arange(1, count + 1), *interval)


def _table(final: dict[str, dict[str, float]], labels: Sequence[str]) -> Table:
    rows = [[METRICS[name], *(f"{final[name][label]:.3f}" for label in labels)] for name in METRICS]
    return Table("At the end", ["metric", *labels], rows, _NOTE)
