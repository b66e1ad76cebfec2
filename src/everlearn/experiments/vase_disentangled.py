"""How far single latents stand for single factors, environment after environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from everlearn.experiments.found import Found, runs_of
from everlearn.experiments.trial import PAPER, SMALL, Settings, Trial
from everlearn.experiments.vase import PLAIN, SPRITES, VASE
from everlearn.experiments.vase_panels import draw_panels
from everlearn.experiments.verdicts import listed, own
from everlearn.metrics.rows import Floats, of_kind
from everlearn.report import Finished, Group, Table
from everlearn.report.chapter import Chapter, Figure
from everlearn.report.lines import Line
from everlearn.report.spread import over_seeds

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab

TITLE, SOURCE = "Disentanglement, environment after environment", "ours"
CLAIM = "Codes that are kept stay as disentangled as they were, and those that are not do not."
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
    "Mean over the environments met, of test images, after the last; mean over seeds. Codes of DCL are the "
    "six entries of its map, and it alone is told the true ones: scale and orientation share four of them, "
    "so no entry stands for one of these, while x and y have one each."
)


def _trials(scale: str, images: int) -> tuple[Trial, ...]:
    """DCL has so many images of an environment: its net is larger and learns from fewer."""
    course = SPRITES[scale]
    maps = course.trial("dcl", "dcl", "DCL")
    return (
        course.ablation(VASE),
        course.ablation(PLAIN),
        course.trial("beta", "beta-vae", "beta-VAE"),
        maps._replace(stream={**maps.stream, "train": images}),
    )


def _small() -> tuple[Trial, ...]:
    """All but the beta-VAE."""
    ours, plain, _, maps = _trials(SMALL, 3200)
    return ours, plain, maps


SETTINGS = {SMALL: Settings(_small()), PAPER: Settings(_trials(PAPER, 25_600))}


def run(lab: Lab) -> None:
    """Let all learn; the exam is part of their plan."""
    lab.learn(lab.settings(SETTINGS).trials)


def figure(found: Found) -> Chapter:
    """Curves of some numbers, and a table of all."""
    trials = found.settings(SETTINGS).trials
    groups = [
        group for group in found.groups(trials) if of_kind(group.runs[0].rows, "disentanglement")
    ]
    ends = {name: {group.label: _end(group, name) for group in groups} for name in METRICS}
    verdicts = [
        own(f"{METRICS[name]} in the end", listed(ends[name]))
        for name in ("mig", "disentanglement")
    ]
    tables = [_table(ends, [group.label for group in groups])] if groups else []
    missing = found.missing(trials)
    return Chapter(_figures(groups), tables, [], verdicts, runs_of(groups), missing)


def after_each(run: Finished, name: str) -> Floats:
    """A number after every environment, (K,): the mean over those met of which it was measured."""
    rows = of_kind(run.rows, "disentanglement")
    stages = sorted({row["learned"] for row in rows})
    return np.array([np.mean([row[name] for row in rows if row["learned"] == k]) for k in stages])


def _end(group: Group, name: str) -> float:
    return float(np.mean([after_each(run, name)[-1] for run in group.runs]))


def _figures(groups: Sequence[Group]) -> list[Figure]:
    panels = {METRICS[name]: [_line(group, name) for group in groups] for name in _DRAWN}
    if not groups:
        return []
    words = "numbers of disentanglement after each environment, by method"
    svg = draw_panels(panels, "vase-disentangled", "environments learned", "mean", words)
    caption = "Mean over the environments met of what their codes score; bands: over seeds."
    return [Figure(svg, caption)]


def _line(group: Group, name: str) -> Line:
    seeds = [after_each(run, name) for run in group.runs]
    count = min(map(len, seeds))
    span = over_seeds(np.stack([values[:count] for values in seeds]))
    return Line(group.label, group.method, np.arange(1, count + 1), *span)


def _table(ends: dict[str, dict[str, float]], labels: Sequence[str]) -> Table:
    rows = [[METRICS[name], *(f"{ends[name][label]:.3f}" for label in labels)] for name in METRICS]
    return Table("In the end", ["number", *labels], rows, _NOTE)
