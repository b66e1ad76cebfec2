"""Lines with interval bands, labelled at their ends or in a legend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from everlearn.report.charts.accuracy_lines import Line
from everlearn.report.charts.axis import BELOW, LEFT, axis_limits, format_x_axis
from everlearn.report.charts.figure import drawing, new_figure, place, to_svg
from everlearn.report.charts.line_labels import LineLabels
from everlearn.report.charts.style import PLOT_HEIGHT, WIDTH, line_styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MAX_MARKERS = 10


def draw_lines(
    lines: Sequence[Line],
    name: str,
    x: str,
    y: str,
    description: str,
    log: bool = False,
    top: float | None = 1.0,
) -> str:
    """Draw lines with their bands as SVG.

    Args:
        name: of the figure, unique on the page.
        x: label of the x axis.
        y: label of the y axis.
        description: text for readers who cannot see the figure.
        log: whether the x axis is logarithmic.
        top: upper end of the y axis; None chooses it a little above the highest line.
    """
    with drawing(name):
        return to_svg(line_figure(lines, x, y, log, top), description)


def line_figure(
    lines: Sequence[Line],
    x: str,
    y: str,
    log: bool = False,
    top: float | None = 1.0,
    size: tuple[int, int] = (WIDTH, PLOT_HEIGHT),
) -> Figure:
    """Make a figure of lines; create and save it inside `drawing`.

    Args:
        size: width of the figure and height of the plot in pixels.
    """
    width, height = size
    bounds = _y_bounds(lines, top)
    labels = LineLabels(lines, height, bounds, width)
    figure = new_figure(width, round(BELOW + height + labels.top_margin))
    axes = figure.subplots()
    place(axes, LEFT, BELOW, width - LEFT - labels.right_margin, height)
    format_x_axis(axes, [line.x for line in lines], log)
    plot_lines(axes, lines, bounds)
    labels.draw(axes)
    axes.set(xlabel=x, ylabel=y)
    return figure


def plot_lines(
    axes: Axes,
    lines: Sequence[Line],
    bounds: tuple[float, float] = (0, 1),
    markers: bool = True,
) -> None:
    """Plot lines and bands into axes; `bounds` are those of the y axis."""
    styles = line_styles({line.label: line.method for line in lines})
    for number, line in enumerate(lines):
        style = styles[line.label]
        many = len(line.x) > _MAX_MARKERS
        axes.fill_between(line.x, line.low, line.high, color=style.color, alpha=0.15, linewidth=0)
        # Markers keep equal distances, and each line starts them elsewhere, so that lines that cover
        # one another can be told apart.
        axes.plot(
            line.x, line.mean, linestyle=style.dashes, color=style.color, label=line.label,
            linewidth=2, marker=style.marker if markers else "", markersize=6,
            solid_capstyle="round", clip_on=False,
            markevery=(0.03 * (number % 4), 0.12) if many else None,
        )  # fmt: skip
    axes.set_ylim(*bounds)
    axes.margins(x=0.01)


def _y_bounds(lines: Sequence[Line], top: float | None) -> tuple[float, float]:
    if not lines:
        raise ValueError("a chart needs a line, found none; leave the chart out")
    if top is None:
        return axis_limits(ends for line in lines for ends in (line.low, line.high, line.mean))
    means = np.concatenate([line.mean for line in lines])
    if not ((means >= 0) & (means <= top)).all():
        found = f"{means.min():g} .. {means.max():g}"
        raise ValueError(f"lines must lie in 0 .. {top:g}, found {found}; give top=None")
    return 0.0, top
