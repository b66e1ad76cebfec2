"""Dots with labels beside them, or with a legend where the labels do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from everlearn.report.charts.axis import BELOW, LEFT, axis_limits, check_positive, format_x_axis
from everlearn.report.charts.figure import drawing, new_figure, place, to_svg
from everlearn.report.charts.label_placement import Label, place_labels
from everlearn.report.charts.line_labels import Legend
from everlearn.report.charts.style import (
    BACKGROUND,
    MUTED,
    PLOT_HEIGHT,
    SMALL,
    WIDTH,
    line_styles,
    text_width,
)
from everlearn.report.tables.intervals import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ABOVE, _RIGHT = 12, 24  # pixels
_PLOT_WIDTH = WIDTH - LEFT - _RIGHT
# A background of its own keeps grid lines from running through a label.
_LABEL_BOX = {"facecolor": BACKGROUND, "edgecolor": "none", "pad": 0.5}
_LEADER = {"arrowstyle": "-", "color": MUTED, "linewidth": 0.75, "shrinkA": 0, "shrinkB": 4}

Limits = tuple[float, float]


class Dot(NamedTuple):
    """Two numbers of a method."""

    label: str
    method: str
    x: float
    y: float


def draw_dots(
    dots: Sequence[Dot], name: str, x: str, y: str, description: str, log: bool = True
) -> str:
    """Draw labelled dots as SVG.

    Args:
        name: of the figure, unique on the page.
        x: label of the x axis.
        y: label of the y axis.
        description: text for readers who cannot see the figure.
        log: whether the x axis is logarithmic.
    """
    if not dots:
        raise ValueError("a chart needs a dot, found none; leave the chart out")
    x_limits = _x_limits([dot.x for dot in dots], log)
    y_limits = _y_limits([dot.y for dot in dots])
    pixels = _pixels(dots, x_limits, y_limits, log)
    widths = [text_width(dot.label, SMALL) + 4 for dot in dots]
    labels = place_labels(pixels, widths, SMALL + 4, (_PLOT_WIDTH, PLOT_HEIGHT))
    legend = Legend([dot.label for dot in dots])
    with drawing(name):
        above = legend.height if labels is None else _ABOVE
        figure = new_figure(WIDTH, round(BELOW + PLOT_HEIGHT + above))
        axes = figure.subplots()
        place(axes, LEFT, BELOW, _PLOT_WIDTH, PLOT_HEIGHT)
        format_x_axis(axes, [[dot.x for dot in dots]], log)
        axes.set(xlabel=x, ylabel=y, xlim=x_limits, ylim=y_limits)
        _plot(axes, dots)
        if labels is None:
            legend.draw(axes)
        else:
            _draw_labels(axes, dots, pixels, labels)
        return to_svg(figure, description)


def _x_limits(values: Sequence[float], log: bool) -> Limits:
    if not log:
        return axis_limits([values])
    check_positive(values)
    low = np.log10(min(values))
    high = np.log10(max(values))
    margin = max(0.2, 0.08 * (high - low))
    return float(10 ** (low - margin)), float(10 ** (high + margin))


def _y_limits(values: Sequence[float]) -> Limits:
    """Leave room for a label below the lowest dot."""
    low, high = axis_limits([values])
    return low - 0.08 * (high - low), high


def _pixels(dots: Sequence[Dot], x_limits: Limits, y_limits: Limits, log: bool) -> Floats:
    """Positions (N, 2) of dots in pixels from the lower left corner of the plot."""
    scale = np.log10 if log else np.asarray
    x = scale(np.array([dot.x for dot in dots]))
    left, right = scale(np.array(x_limits))
    y = (np.array([dot.y for dot in dots]) - y_limits[0]) / (y_limits[1] - y_limits[0])
    return np.stack([_PLOT_WIDTH * (x - left) / (right - left), PLOT_HEIGHT * y], axis=1)


def _plot(axes: Axes, dots: Sequence[Dot]) -> None:
    styles = line_styles({dot.label: dot.method for dot in dots})
    for dot in dots:
        style = styles[dot.label]
        axes.plot(
            [dot.x], [dot.y], color=style.color, marker=style.marker, markersize=8,
            label=dot.label, linestyle="none", clip_on=False, zorder=3,
        )  # fmt: skip


def _draw_labels(axes: Axes, dots: Sequence[Dot], pixels: Floats, labels: Sequence[Label]) -> None:
    for dot, (x, y), (box, leader) in zip(dots, pixels, labels, strict=True):
        # Aligned towards the dot, a label stays beside it even if the reader's font is narrower.
        before = box.left + box.width / 2 < x
        edge = box.left + box.width - 2 if before else box.left + 2
        axes.annotate(
            dot.label, (dot.x, dot.y), (edge - x, box.bottom + box.height / 2 - y),
            textcoords="offset points", va="center", ha="right" if before else "left",
            fontsize=SMALL, bbox=_LABEL_BOX,
        )  # fmt: skip
        if leader:
            axes.annotate(
                "", (dot.x, dot.y), (leader[1][0] - x, leader[1][1] - y),
                textcoords="offset points", arrowprops=_LEADER,
            )  # fmt: skip
