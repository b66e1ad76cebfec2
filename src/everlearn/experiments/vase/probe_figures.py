"""Figures of probes during training, and of the latents that each environment uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from everlearn.experiments.vase.panels import LatentMarks, draw_latent_marks, draw_panels
from everlearn.experiments.vase.scores import environment_name, environment_names
from everlearn.metrics import ends_of_tasks
from everlearn.metrics.codes import CodeProbes, code_probes
from everlearn.metrics.latents import described_last
from everlearn.metrics.measured import Floats
from everlearn.report import Group, LoadedRun
from everlearn.report.charts.accuracy_lines import Line
from everlearn.report.experiment import Figure
from everlearn.report.tables.intervals import interval_over_seeds
from everlearn.rows import LatentsRow, of_kind

STRONG = 0.8  # correlation of a latent that encodes a position
_POSITION_UNIT = 1e4  # squared errors of position are shown in 1e-4

Metric = Callable[[CodeProbes], Floats]


def probe_figures(groups: Sequence[Group], name: str) -> list[Figure]:
    """Draw accuracy, and errors of position where it varies, with one panel per environment."""
    figures = []
    if panels := _panels(groups, lambda probes: probes.accuracy):
        caption = (
            "Accuracy of probes that read the class from codes, retrained each time. Vertical lines: ends "
            "of environments, which are learned in the order of the panels."
        )
        figures.append(_figure(groups, panels, f"{name}-objects", "accuracy", caption, 1.0))
    if panels := _panels(groups, _position_error):
        caption = (
            "Mean squared error of probes that read positions, from 0 to 1 across the canvas, from codes. "
            "Values before the first step are left out."
        )
        figures.append(_figure(groups, panels, f"{name}-places", "error, in 1e-4", caption, None))
    return figures


def _position_error(probes: CodeProbes) -> Floats:
    return np.where(probes.learned < 0, np.nan, _POSITION_UNIT * probes.position_error)


def _figure(
    groups: Sequence[Group],
    panels: dict[str, list[Line]],
    name: str,
    y: str,
    caption: str,
    top: float | None,
) -> Figure:
    borders = sorted(ends_of_tasks(groups[0].runs[0].costs).values())
    description = f"{y} of probes during training, by environment and method"
    svg = draw_panels(panels, name, "optimizer steps", y, description, borders, top)
    return Figure(svg, caption)


def _panels(groups: Sequence[Group], metric: Metric) -> dict[str, list[Line]]:
    """Return the lines of each environment in which the metric was measured."""
    runs = [run for group in groups for run in group.runs]
    indices = sorted({index for run in runs for index in code_probes(run.rows)})
    panels = {environment_name(runs[0], index): _lines(groups, index, metric) for index in indices}
    return {name: lines for name, lines in panels.items() if lines}


def _lines(groups: Sequence[Group], environment: int, metric: Metric) -> list[Line]:
    lines = [_line(group, environment, metric) for group in groups]
    return [line for line in lines if line is not None]


def _line(group: Group, environment: int, metric: Metric) -> Line | None:
    """Return the mean over seeds at the steps that all seeds measured; None where there are none."""
    seeds = [by_step for run in group.runs if (by_step := _by_step(run, environment, metric))]
    if not seeds:
        return None
    steps = reduce(np.intersect1d, [np.array([*by_step]) for by_step in seeds])
    if not len(steps):
        return None
    values = np.array([[by_step[step] for step in steps.tolist()] for by_step in seeds])
    return Line(group.label, group.method, steps, *interval_over_seeds(values))


def _by_step(run: LoadedRun, environment: int, metric: Metric) -> dict[int, float]:
    probes = code_probes(run.rows).get(environment)
    if probes is None:
        return {}
    pairs = zip(probes.step.tolist(), metric(probes).tolist(), strict=True)
    return {step: value for step, value in pairs if np.isfinite(value)}


def latents_when_learned(run: LoadedRun) -> dict[int, LatentsRow]:
    """Return the latents of each environment at the end of its stage, when it was certainly active."""
    rows = [row for row in of_kind(run.rows, LatentsRow) if row["mask"] is not None]
    return {row["tested"]: row for row in rows if row["learned"] == row["tested"]}


def latent_figures(run: LoadedRun, name: str) -> list[Figure]:
    """Draw which latents each environment uses at the end of its stage; no figure without rows."""
    rows = latents_when_learned(run)
    if not rows:
        return []
    marks = [_marks(environment_name(run, index), row) for index, row in rows.items()]
    description = "masked and used latents, by environment"
    caption = (
        f"Latents of each environment at the end of its stage, seed {run.seed}: filled where a latent is "
        f"used, crossed where it is masked; x and y where it encodes a position (correlation above "
        f"{STRONG})."
    )
    return [Figure(draw_latent_marks(marks, name, description), caption)]


def _marks(name: str, row: LatentsRow) -> LatentMarks:
    masked = [not applies for applies in row["mask"] or ()]
    used = [bool(value) for value in row["used"] or ()]
    letters = [
        "".join(axis for axis in ("x", "y") if _encodes(row, axis, latent))
        for latent in range(len(masked))
    ]
    return LatentMarks(name, masked, used, letters)


def _encodes(row: LatentsRow, axis: str, latent: int) -> bool:
    correlations = row["x"] if axis == "x" else row["y"]
    value = None if correlations is None else correlations[latent]
    return value is not None and abs(value) > STRONG


def shares_position(run: LoadedRun) -> bool | None:
    """Return whether one latent for x and one for y serve all moving environments and only those.

    Masks are those at the end of each environment's stage; correlations are those at the end of all. None
    where fewer than two moving environments and one other were measured.
    """
    learned = latents_when_learned(run)
    names = environment_names(run)
    final = described_last(of_kind(run.rows, LatentsRow))
    masks = {index: row["mask"] or [] for index, row in learned.items()}
    moving = [index for index in masks if "moving" in names[index]]
    still = [index for index in masks if "moving" not in names[index]]
    if len(moving) < 2 or not still:
        return None
    candidates = [
        latent
        for latent in range(len(masks[moving[0]]))
        if all(masks[index][latent] for index in moving)
        and not any(masks[index][latent] for index in still)
    ]
    x, y = (
        [n for n in candidates if all(_encodes(final[index], axis, n) for index in moving)]
        for axis in ("x", "y")
    )
    return any(first != second for first in x for second in y)
