"""Horizontal bars with intervals and values."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, NamedTuple

from everlearn.report.charts.axis import BELOW, axis_limits, tick_label
from everlearn.report.charts.figure import drawing, new_figure, place, to_svg
from everlearn.report.charts.style import SMALL, TEXT, TEXT_COLOR, WIDTH, line_styles, text_width
from everlearn.report.tables import numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BAR_HEIGHT, _TOP = 30, 12  # pixels: a bar with its gap, and the margin above all bars
_LABEL_LENGTH = 28  # letters in a line of a label
_VALUE_WIDTH = 64  # pixels beside the bars, for the values


class Bar(NamedTuple):
    """A number of a method, with the ends of its interval."""

    label: str
    method: str
    value: float
    low: float
    high: float


def draw_bars(bars: Sequence[Bar], name: str, x: str, description: str) -> str:
    """Draw one bar per number as SVG, the first at the top.

    Args:
        name: of the figure, unique on the page.
        x: label of the x axis.
        description: text for readers who cannot see the figure.
    """
    if not bars:
        raise ValueError("a chart needs a bar, found none; leave the chart out")
    labels = ["\n".join(wrap(bar.label, _LABEL_LENGTH)) or " " for bar in bars]
    left = 16 + max(text_width(line, TEXT) for label in labels for line in label.split("\n"))
    label_lines = max(label.count("\n") + 1 for label in labels)
    height = len(bars) * max(_BAR_HEIGHT, 1.35 * TEXT * label_lines)
    with drawing(name):
        figure = new_figure(WIDTH, round(BELOW + height + _TOP))
        axes = figure.subplots()
        place(axes, left, BELOW, WIDTH - left - _VALUE_WIDTH, height)
        _plot(axes, bars)
        axes.set_yticks(range(len(bars)), labels, fontsize=TEXT, color=TEXT_COLOR)
        axes.set(xlabel=x)
        return to_svg(figure, description)


def _plot(axes: Axes, bars: Sequence[Bar]) -> None:
    styles = line_styles({bar.label: bar.method for bar in bars})
    fractions = all(abs(bar.value) <= 1 for bar in bars)
    write = numbers.fraction if fractions else numbers.three_digits
    axes.grid(False)
    axes.grid(True, axis="x")
    axes.set_xlim(*axis_limits([(bar.value, bar.low, bar.high) for bar in bars]))
    axes.set_ylim(len(bars) - 0.5, -0.5)
    axes.locator_params("x", nbins=6)
    axes.xaxis.set_major_formatter(lambda value, _: tick_label(value))
    for row, bar in enumerate(bars):
        axes.barh(row, bar.value, 0.6, color=styles[bar.label].color)
        interval = (bar.low, bar.high)
        axes.plot(interval, (row, row), color=TEXT_COLOR, linewidth=1, marker="|", markersize=9)
        end = (max(bar.value, bar.high, 0), row)
        axes.annotate(
            write(bar.value), end, (6, 0), textcoords="offset points", va="center", fontsize=SMALL
        )
