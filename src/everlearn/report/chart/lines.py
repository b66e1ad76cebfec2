"""Lines with bands, each named at its end or in a legend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from everlearn.report.chart.axis import BELOW, LEFT, number_across, reach
from everlearn.report.ends import Ends
from everlearn.report.figure import drawing, new_figure, place, to_svg
from everlearn.report.lines import Line
from everlearn.report.style import TALL, WIDTH, choose_inks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_MARKERS = 10


def draw_lines(
    lines: Sequence[Line],
    name: str,
    x: str,
    y: str,
    words: str,
    log: bool = False,
    top: float | None = 1.0,
) -> str:
    """Draw lines with their bands as SVG.

    Args:
        name: of the figure; figures on one page need different ones.
        x: what the axis across says.
        y: what the axis upwards says.
        words: what is to be seen, for those who cannot see it.
        log: whether the axis across is logarithmic.
        top: where the axis upwards ends; None: a little over the highest line.
    """
    with drawing(name):
        return to_svg(line_figure(lines, x, y, log, top), words)


def line_figure(
    lines: Sequence[Line], x: str, y: str, log: bool = False, top: float | None = 1.0
) -> Figure:
    """Make a figure of lines; to be called and saved while `drawing`."""
    bounds = _bounds(lines, top)
    ends = Ends(lines, TALL, bounds)
    figure = new_figure(WIDTH, round(BELOW + TALL + ends.above))
    axes = figure.subplots()
    place(axes, LEFT, BELOW, WIDTH - LEFT - ends.right, TALL)
    number_across(axes, [line.x for line in lines], log)
    plot_lines(axes, lines, bounds)
    ends.write(axes)
    axes.set(xlabel=x, ylabel=y)
    return figure


def plot_lines(
    axes: Axes,
    lines: Sequence[Line],
    bounds: tuple[float, float] = (0, 1),
    markers: bool = True,
) -> None:
    """Draw lines and bands into axes that go from one bound to the other."""
    inks = choose_inks({line.label: line.method for line in lines})
    for number, line in enumerate(lines):
        ink, many = inks[line.label], len(line.x) > _MOST_MARKERS
        axes.fill_between(line.x, line.low, line.high, color=ink.color, alpha=0.15, linewidth=0)
        # Markers come at equal distances, and each line starts them elsewhere: lines that cover one
        # another show through.
        axes.plot(
            line.x, line.mean, linestyle=ink.dashes, color=ink.color, label=line.label, linewidth=2,
            marker=ink.marker if markers else "", markersize=6, solid_capstyle="round", clip_on=False,
            markevery=(0.03 * (number % 4), 0.12) if many else None,
        )  # fmt: skip
    axes.set_ylim(*bounds)
    axes.margins(x=0.01)


def _bounds(lines: Sequence[Line], top: float | None) -> tuple[float, float]:
    if not lines:
        raise ValueError("a chart needs a line, found none; leave the chart out")
    if top is None:
        return reach(ends for line in lines for ends in (line.low, line.high, line.mean))
    means = np.concatenate([line.mean for line in lines])
    if not ((means >= 0) & (means <= top)).all():
        found = f"{means.min():g} .. {means.max():g}"
        raise ValueError(f"lines must lie in 0 .. {top:g}, found {found}; give top=None")
    return 0.0, top
