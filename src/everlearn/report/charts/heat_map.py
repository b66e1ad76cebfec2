"""The accuracy matrix of one run as a heat map."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from everlearn.metrics import Table, table
from everlearn.report.charts.figure import drawing, new_figure, place, to_svg
from everlearn.report.charts.style import SMALL, WIDTH, stride
from everlearn.report.tables.intervals import Ints
from everlearn.rows import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEFT, _BELOW, _TOP, _RIGHT = 64, 52, 16, 80  # pixels around the map
_SIDE = WIDTH - _LEFT - _RIGHT
_MIN_HEIGHT = 180
_MAX_CELLS_WITH_NUMBERS = 12  # in a row or column
_MAX_TICKS = 12
# Not the theme's colours: cells look the same on a dark page.
_ON_LIGHT, _ON_DARK = "#111111", "#fefefe"


def draw_heat_map(rows: Iterable[Row], name: str) -> str:
    """Draw accuracy by tasks learned (y axis) and task tested (x axis) as SVG; tasks count from 1.

    Args:
        name: of the figure, unique on the page.
    """
    matrix = table(rows)
    if not len(matrix.learned):
        raise ValueError("no test row was found; a heat map needs a run that was tested")
    height = round(_SIDE * len(matrix.learned) / len(matrix.tested))
    height = min(_SIDE, max(_MIN_HEIGHT, height))
    with drawing(name):
        figure = new_figure(WIDTH, height + _BELOW + _TOP)
        axes, bar_axes = figure.subplots(1, 2)
        place(axes, _LEFT, _BELOW, _SIDE, height)
        place(bar_axes, _LEFT + _SIDE + 24, _BELOW, 14, height)
        image = axes.imshow(
            matrix.accuracy, "viridis", vmin=0, vmax=1, aspect="auto", interpolation="none"
        )
        _label_axes(axes, matrix)
        _write_numbers(axes, matrix)
        bar = figure.colorbar(image, cax=bar_axes, ticks=[0, 0.5, 1], drawedges=False)
        bar.outline.set_visible(False)
        return to_svg(figure, "accuracy by tasks learned and task tested")


def _label_axes(axes: Axes, matrix: Table) -> None:
    axes.grid(False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.set(xlabel="task tested", ylabel="tasks learned")
    axes.set_xticks(*_ticks(matrix.tested + 1))
    axes.set_yticks(*_ticks(matrix.learned + 1))


def _ticks(values: Ints) -> tuple[list[int], list[str]]:
    positions = list(range(0, len(values), stride(len(values), _MAX_TICKS)))
    return positions, [str(values[position]) for position in positions]


def _write_numbers(axes: Axes, matrix: Table) -> None:
    """Write the accuracy into each cell if the cells are large enough."""
    if max(matrix.accuracy.shape) > _MAX_CELLS_WITH_NUMBERS:
        return
    for (row, column), value in np.ndenumerate(matrix.accuracy):
        if not np.isnan(value):
            color = _ON_LIGHT if value > 0.55 else _ON_DARK
            text = f"{value:.2f}"
            axes.text(column, row, text, color=color, ha="center", va="center", fontsize=SMALL)
