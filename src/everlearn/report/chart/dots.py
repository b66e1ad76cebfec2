"""Dots with their names beside them, or in a legend where there is no room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from everlearn.report.chart.axis import BELOW, LEFT, check_positive, number_across, reach
from everlearn.report.chart.room import Name, find_room
from everlearn.report.ends import Legend
from everlearn.report.figure import drawing, new_figure, place, to_svg
from everlearn.report.spread import Floats
from everlearn.report.style import FAINT, PAPER, SMALL, TALL, WIDTH, choose_inks, text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ABOVE, _RIGHT = 12, 24  # pixels
_WIDE = WIDTH - LEFT - _RIGHT
_PATCH = {"facecolor": PAPER, "edgecolor": "none", "pad": 0.5}  # no rule runs through a name
_LEAD = {"arrowstyle": "-", "color": FAINT, "linewidth": 0.75, "shrinkA": 0, "shrinkB": 4}


class Dot(NamedTuple):
    """Two numbers of a method."""

    label: str
    method: str
    x: float
    y: float


def draw_dots(dots: Sequence[Dot], name: str, x: str, y: str, words: str, log: bool = True) -> str:
    """Draw labelled dots as SVG.

    Args:
        name: of the figure; figures on one page need different ones.
        x: what the axis across says.
        y: what the axis upwards says.
        words: what is to be seen, for those who cannot see it.
        log: whether the axis across is logarithmic.
    """
    if not dots:
        raise ValueError("a chart needs a dot, found none; leave the chart out")
    limits = _limits([dot.x for dot in dots], log), _heights([dot.y for dot in dots])
    places = _pixels(dots, *limits, log)
    widths = [text_width(dot.label, SMALL) + 4 for dot in dots]
    names = find_room(places, widths, SMALL + 4, (_WIDE, TALL))
    legend = Legend([dot.label for dot in dots])
    with drawing(name):
        above = legend.height if names is None else _ABOVE
        figure = new_figure(WIDTH, round(BELOW + TALL + above))
        axes = figure.subplots()
        place(axes, LEFT, BELOW, _WIDE, TALL)
        number_across(axes, [[dot.x for dot in dots]], log)
        axes.set(xlabel=x, ylabel=y, xlim=limits[0], ylim=limits[1])
        _plot(axes, dots)
        if names is None:
            legend.write(axes)
        else:
            _write(axes, dots, places, names)
        return to_svg(figure, words)


def _limits(values: Sequence[float], log: bool) -> tuple[float, float]:
    if not log:
        return reach([values])
    check_positive(values)
    low, high = np.log10(min(values)), np.log10(max(values))
    room = max(0.2, 0.08 * (high - low))
    return float(10 ** (low - room)), float(10 ** (high + room))


def _heights(values: Sequence[float]) -> tuple[float, float]:
    """Ends of the axis upwards, with room for a name below the lowest dot."""
    low, high = reach([values])
    return low - 0.08 * (high - low), high


def _pixels(
    dots: Sequence[Dot], across: tuple[float, float], up: tuple[float, float], log: bool
) -> Floats:
    """Places (N, 2) of dots in pixels from the lower left corner of the plot."""
    x, ends = np.array([dot.x for dot in dots]), np.array(across)
    if log:
        x, ends = np.log10(x), np.log10(ends)
    y = (np.array([dot.y for dot in dots]) - up[0]) / (up[1] - up[0])
    return np.stack([_WIDE * (x - ends[0]) / (ends[1] - ends[0]), TALL * y], axis=1)


def _plot(axes: Axes, dots: Sequence[Dot]) -> None:
    inks = choose_inks({dot.label: dot.method for dot in dots})
    for dot in dots:
        ink = inks[dot.label]
        axes.plot(
            [dot.x], [dot.y], color=ink.color, marker=ink.marker, markersize=8, label=dot.label,
            linestyle="none", clip_on=False, zorder=3,
        )  # fmt: skip


def _write(axes: Axes, dots: Sequence[Dot], places: Floats, names: Sequence[Name]) -> None:
    for dot, (x, y), (box, line) in zip(dots, places, names, strict=True):
        # Names end or begin beside their dot, whatever the reader's font makes of their width.
        before = box.left + box.width / 2 < x
        edge = box.left + box.width - 2 if before else box.left + 2
        axes.annotate(
            dot.label, (dot.x, dot.y), (edge - x, box.low + box.height / 2 - y),
            textcoords="offset points", va="center", ha="right" if before else "left",
            fontsize=SMALL, bbox=_PATCH,
        )  # fmt: skip
        if line:
            axes.annotate(
                "", (dot.x, dot.y), (line[1][0] - x, line[1][1] - y),
                textcoords="offset points", arrowprops=_LEAD,
            )  # fmt: skip
