"""The accuracy matrix of one run as a heat map."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from everlearn.metrics import Row, Table, table
from everlearn.report.figure import drawing, new_figure, place, to_svg
from everlearn.report.groups import Group
from everlearn.report.numbers import count
from everlearn.report.page import Section, embed_svg
from everlearn.report.spread import Ints
from everlearn.report.style import SMALL, stride

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEFT, _BELOW, _TOP, _SIDE = 64, 52, 16, 440  # pixels
_LOWEST = 180
_MOST_NUMBERS = _MOST_TICKS = 12
_MOST_OPEN = 4
# Not the ink and the paper of the page: cells keep their colours in the dark.
_ON_LIGHT, _ON_DARK = "#111111", "#fefefe"


def heat_maps(groups: Sequence[Group], command: str = "") -> Section:
    """Show a map a group, of its first seed; many are folded up."""
    maps = [
        embed_svg(draw_heat(group.runs[0].rows, f"heat-{place}"), _first(group))
        for place, group in enumerate(groups)
    ]
    words = "Accuracy on each task after so many tasks learned; empty where it was not measured."
    body = f'<div class="pair">{"".join(maps)}</div>'
    if len(maps) > _MOST_OPEN:
        body = f"<details><summary>{count(len(maps), 'map')}</summary>\n{body}</details>"
    return Section("Task by task", words, body, command)


def _first(group: Group) -> str:
    return f"{group.label}, seed {group.runs[0].seed}"


def draw_heat(rows: Iterable[Row], name: str) -> str:
    """Draw accuracy by tasks learned (down) and task tested (across), as SVG.

    Args:
        name: of the figure; figures on one page need different ones.
    """
    found = table(rows)
    if not len(found.learned):
        raise ValueError("no test row was found; a heat map needs a run that was tested")
    tall = min(_SIDE, max(_LOWEST, round(_SIDE * len(found.learned) / len(found.tested))))
    with drawing(name):
        figure = new_figure(_LEFT + _SIDE + 80, tall + _BELOW + _TOP)
        axes, bar = figure.subplots(1, 2)
        place(axes, _LEFT, _BELOW, _SIDE, tall)
        place(bar, _LEFT + _SIDE + 24, _BELOW, 14, tall)
        picture = axes.imshow(
            found.accuracy, "viridis", vmin=0, vmax=1, aspect="auto", interpolation="none"
        )
        _mark_axes(axes, found)
        _write_numbers(axes, found)
        figure.colorbar(picture, cax=bar, ticks=[0, 0.5, 1], drawedges=False).outline.set_visible(
            False
        )
        return to_svg(figure, "accuracy by tasks learned and task tested")


def _mark_axes(axes: Axes, found: Table) -> None:
    axes.grid(False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.set(xlabel="task tested", ylabel="tasks learned")
    axes.set_xticks(*_ticks(found.tested))
    axes.set_yticks(*_ticks(found.learned + 1))


def _ticks(values: Ints) -> tuple[list[int], list[str]]:
    places = list(range(0, len(values), stride(len(values), _MOST_TICKS)))
    return places, [str(values[place]) for place in places]


def _write_numbers(axes: Axes, found: Table) -> None:
    """Write accuracies into the cells where they have room."""
    if max(found.accuracy.shape) > _MOST_NUMBERS:
        return
    for (row, column), value in np.ndenumerate(found.accuracy):
        if not np.isnan(value):
            ink = _ON_LIGHT if value > 0.55 else _ON_DARK
            words = f"{value:.2f}"
            axes.text(column, row, words, color=ink, ha="center", va="center", fontsize=SMALL)
