"""What is seen of VASE beside CCI-VAE: probes through training, and latents by environment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from everlearn.experiments.vase_panels import Marks, draw_marks, draw_panels
from everlearn.experiments.vase_read import name_of, names_of
from everlearn.metrics import ends_of_tasks
from everlearn.metrics.codes import Probed, probed
from everlearn.metrics.latents import described_last
from everlearn.metrics.rows import Floats, of_kind
from everlearn.report import Finished, Group
from everlearn.report.chapter import Figure
from everlearn.report.lines import Line
from everlearn.report.spread import over_seeds
from everlearn.results import Row

STRONG = 0.8  # correlation of a latent that tells a position
_FINE = 1e4

Read = Callable[[Probed], Floats]


def probe_figures(groups: Sequence[Group], name: str) -> list[Figure]:
    """Accuracy, and errors of position where it varies: a panel an environment."""
    found = []
    if accuracy := _panels(groups, lambda one: one.accuracy):
        caption = (
            "Classes read out of codes by probes that are trained anew each time; upright lines: ends "
            "of environments, which are learned in the order of the panels."
        )
        found.append(_figure(groups, accuracy, f"{name}-objects", "accuracy", caption, 1.0))
    if places := _panels(groups, _misplaced):
        caption = (
            "Mean squared error of positions read out of codes, which are from 0 to 1 across; what was "
            "read before the first step is left out."
        )
        found.append(_figure(groups, places, f"{name}-places", "error, in 1e-4", caption, None))
    return found


def _misplaced(one: Probed) -> Floats:
    return np.where(one.learned < 0, np.nan, _FINE * one.square_error)


def _figure(
    groups: Sequence[Group], panels: dict[str, list[Line]], name: str, y: str, caption: str,
    top: float | None,
) -> Figure:  # fmt: skip
    borders = sorted(ends_of_tasks(groups[0].runs[0].costs).values())
    words = f"{y} of probes while training, by environment and method"
    svg = draw_panels(panels, name, "steps of the optimiser", y, words, borders, top)
    return Figure(svg, caption)


def _panels(groups: Sequence[Group], read: Read) -> dict[str, list[Line]]:
    """Lines by the environment probed, those that were measured."""
    places = sorted({place for group in groups for run in group.runs for place in probed(run.rows)})
    named = {place: name_of(groups[0].runs[0], place) for place in places}
    panels = {named[place]: _lines(groups, place, read) for place in places}
    return {name: lines for name, lines in panels.items() if lines}


def _lines(groups: Sequence[Group], place: int, read: Read) -> list[Line]:
    found = [_line(group, place, read) for group in groups]
    return [line for line in found if line is not None]


def _line(group: Group, place: int, read: Read) -> Line | None:
    """The mean over seeds at the steps that all of them measured; None where there are none."""
    seeds = [by_step for run in group.runs if (by_step := _by_step(run, place, read))]
    if not seeds:
        return None
    steps = reduce(np.intersect1d, [np.array([*one]) for one in seeds])
    values = np.array([[one[step] for step in steps.tolist()] for one in seeds])
    return Line(group.label, group.method, steps, *over_seeds(values)) if len(steps) else None


def _by_step(run: Finished, place: int, read: Read) -> dict[int, float]:
    found = probed(run.rows).get(place)
    if found is None:
        return {}
    both = zip(found.step.tolist(), read(found).tolist(), strict=True)
    return {step: value for step, value in both if np.isfinite(value)}


def described(run: Finished) -> dict[int, Row]:
    """The description of latents when each environment was left, while it was surely the active one."""
    told = [row for row in of_kind(run.rows, "latents") if row["mask"] is not None]
    return {row["tested"]: row for row in told if row["learned"] == row["tested"]}


def mark_figures(run: Finished, name: str) -> list[Figure]:
    """Which latents were at work in each environment as it was left; nothing where it was not told."""
    told = described(run)
    if not told:
        return []
    marks = [_marks(name_of(run, place), row) for place, row in told.items()]
    words = "which latents are masked and which are used, by environment"
    caption = (
        f"Latents of each environment when it was left, seed {run.seed}: filled where a latent is used, "
        f"crossed where it is masked; x and y where it tells a position (correlation over {STRONG})."
    )
    return [Figure(draw_marks(marks, name, words), caption)]


def _marks(name: str, row: Row) -> Marks:
    masked, used = [not one for one in row["mask"]], [bool(one) for one in row["used"]]
    letters = [
        "".join(axis for axis in "xy" if _is_strong(row[axis], n)) for n in range(len(masked))
    ]
    return Marks(name, masked, used, letters)


def _is_strong(correlations: Sequence[float | None] | None, latent: int) -> bool:
    value = None if correlations is None else correlations[latent]
    return value is not None and abs(value) > STRONG


def shares_position(run: Finished) -> bool | None:
    """Whether a latent for x and one for y serve all moving environments, and are masked in the others.

    Masks are those that an environment was learned with; they tell positions in the end. None where that
    was not told of one that moves and of one that does not.
    """
    told, names = described(run), names_of(run)
    end = described_last(of_kind(run.rows, "latents"))
    moving = [place for place in told if "moving" in names[place]]
    still = [place for place in told if "moving" not in names[place]]
    if len(moving) < 2 or not still:
        return None
    fits = [
        [
            n
            for n in range(len(told[moving[0]]["mask"]))
            if all(told[place]["mask"][n] and _is_strong(end[place][axis], n) for place in moving)
            and not any(told[place]["mask"][n] for place in still)
        ]
        for axis in "xy"
    ]
    return any(x != y for x in fits[0] for y in fits[1])
