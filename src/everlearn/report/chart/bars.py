"""Bars that lie, with their intervals and values."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, NamedTuple

from everlearn.report import numbers
from everlearn.report.chart.axis import BELOW, reach, short
from everlearn.report.figure import drawing, new_figure, place, to_svg
from everlearn.report.style import INK, SMALL, TEXT, WIDTH, choose_inks, text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BAR, _TOP = 30, 12  # pixels: a bar with its gap, and above all
_LETTERS = 28  # of a line of a label
_VALUE = 64  # pixels beside the bars, for the values


class Bar(NamedTuple):
    """A number of a method, with the ends of its interval."""

    label: str
    method: str
    value: float
    low: float
    high: float


def draw_bars(bars: Sequence[Bar], name: str, x: str, words: str) -> str:
    """Draw a bar a number as SVG, the first on top.

    Args:
        name: of the figure; figures on one page need different ones.
        x: what the numbers are.
        words: what is to be seen, for those who cannot see it.
    """
    if not bars:
        raise ValueError("a chart needs a bar, found none; leave the chart out")
    labels = ["\n".join(wrap(bar.label, _LETTERS)) or " " for bar in bars]
    left = 16 + max(text_width(line, TEXT) for label in labels for line in label.split("\n"))
    tall = len(bars) * max(_BAR, 1.35 * TEXT * max(label.count("\n") + 1 for label in labels))
    with drawing(name):
        figure = new_figure(WIDTH, round(BELOW + tall + _TOP))
        axes = figure.subplots()
        place(axes, left, BELOW, WIDTH - left - _VALUE, tall)
        _plot(axes, bars)
        axes.set_yticks(range(len(bars)), labels, fontsize=TEXT, color=INK)
        axes.set(xlabel=x)
        return to_svg(figure, words)


def _plot(axes: Axes, bars: Sequence[Bar]) -> None:
    inks = choose_inks({bar.label: bar.method for bar in bars})
    small = all(abs(bar.value) <= 1 for bar in bars)
    words = numbers.share if small else numbers.plain
    axes.grid(False)
    axes.grid(True, axis="x")
    axes.set_xlim(*reach([(bar.value, bar.low, bar.high) for bar in bars]))
    axes.set_ylim(len(bars) - 0.5, -0.5)
    axes.xaxis.set_major_formatter(lambda value, _: short(value))
    for row, bar in enumerate(bars):
        axes.barh(row, bar.value, 0.6, color=inks[bar.label].color)
        ends = (bar.low, bar.high)
        axes.plot(ends, (row, row), color=INK, linewidth=1, marker="|", markersize=9)
        end = (max(bar.value, bar.high, 0), row)
        axes.annotate(
            words(bar.value), end, (6, 0), textcoords="offset points", va="center", fontsize=SMALL
        )
