"""Charts of environments: panels of curves, and grids of the latents that each environment uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from everlearn.report.charts.accuracy_lines import Line
from everlearn.report.charts.axis import BELOW, LEFT, axis_limits, format_x_axis
from everlearn.report.charts.figure import drawing, new_figure, place, to_svg
from everlearn.report.charts.line_labels import LineLabels
from everlearn.report.charts.lines import plot_lines
from everlearn.report.charts.style import (
    BACKGROUND,
    COLORS,
    GRID,
    MUTED,
    PANEL_HEIGHT,
    SMALL,
    TEXT,
    TEXT_COLOR,
    WIDTH,
    text_width,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TITLE = 24  # pixels above a panel
_CELL = 22  # pixels of a latent
_BLUE = COLORS["blue"].light


class LatentMarks(NamedTuple):
    """The latents of an environment: whether each is masked and used, and the letters to write on it."""

    name: str
    masked: Sequence[bool]
    used: Sequence[bool]
    letters: Sequence[str]


def draw_panels(
    panels: Mapping[str, Sequence[Line]],
    name: str,
    x: str,
    y: str,
    description: str,
    borders: Sequence[float] = (),
    top: float | None = 1.0,
) -> str:
    """Draw panels of lines, each with a title, as SVG.

    Args:
        name: name of the figure; figures on one page need different names.
        borders: positions of vertical lines.
        top: upper end of the vertical axes; None for a little above the highest line of each panel.
    """
    labels = {
        title: LineLabels(lines, PANEL_HEIGHT, _bounds(lines, top))
        for title, lines in panels.items()
    }
    heights = [round(_TITLE + PANEL_HEIGHT + one.top_margin + BELOW) for one in labels.values()]
    width = WIDTH - LEFT - max(one.right_margin for one in labels.values())
    with drawing(name):
        figure = new_figure(WIDTH, sum(heights))
        column = figure.subplots(len(panels), squeeze=False)[:, 0]
        for row, (axes, title) in enumerate(zip(column, panels, strict=True)):
            place(axes, LEFT, sum(heights[row + 1 :]) + BELOW, width, PANEL_HEIGHT)
            axes.set(xlabel=x, ylabel=y)
            _draw_panel(axes, title, labels[title], borders)
        return to_svg(figure, description)


def _draw_panel(axes: Axes, title: str, labels: LineLabels, borders: Sequence[float]) -> None:
    for border in borders:
        axes.axvline(border, color=GRID, linewidth=1)
    format_x_axis(axes, [line.x for line in labels.lines], log=False)
    plot_lines(axes, labels.lines, labels.bounds)
    labels.draw(axes)
    offset = (0, labels.top_margin)
    axes.annotate(
        title, (0, 1), offset, "axes fraction", "offset points", fontsize=TEXT, color=TEXT_COLOR
    )


def _bounds(lines: Sequence[Line], top: float | None) -> tuple[float, float]:
    if top is not None:
        return 0.0, top
    return axis_limits(values for line in lines for values in (line.low, line.high, line.mean))


def draw_latent_marks(environments: Sequence[LatentMarks], name: str, description: str) -> str:
    """Draw a row per environment and a cell per latent as SVG: filled if used, crossed if masked."""
    left = 16 + max(text_width(marks.name, SMALL) for marks in environments)
    count = len(environments[0].used)
    height = len(environments) * _CELL
    cell = min(_CELL, (WIDTH - left - 8) / count)
    with drawing(name):
        figure = new_figure(round(left + count * cell + 8), height + BELOW + 8)
        axes = figure.subplots()
        place(axes, left, BELOW, count * cell, height)
        axes.set(xlim=(-0.5, count - 0.5), ylim=(len(environments) - 0.5, -0.5), xlabel="latents")
        axes.grid(False)
        names = [marks.name for marks in environments]
        axes.set_yticks(range(len(names)), names, fontsize=SMALL, color=TEXT_COLOR)
        axes.locator_params("x", integer=True)
        for row, marks in enumerate(environments):
            _draw_marks(axes, row, marks)
        return to_svg(figure, description)


def _draw_marks(axes: Axes, row: int, marks: LatentMarks) -> None:
    cells = zip(marks.masked, marks.used, marks.letters, strict=True)
    for column, (masked, used, letter) in enumerate(cells):
        if masked:
            axes.text(column, row, "×", color=MUTED, ha="center", va="center", fontsize=SMALL)
            continue
        axes.bar(
            column, 0.86, 0.86, row - 0.43, color=_BLUE if used else "none",
            edgecolor=_BLUE if used else GRID,
        )  # fmt: skip
        color = BACKGROUND if used else TEXT_COLOR
        axes.text(column, row, letter, color=color, ha="center", va="center", fontsize=SMALL)
