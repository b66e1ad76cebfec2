"""Figures of environments: panels of curves, one an environment, and which latents are at work where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from everlearn.report.chart.axis import BELOW, LEFT, number_across, reach
from everlearn.report.chart.lines import plot_lines
from everlearn.report.ends import Ends
from everlearn.report.figure import drawing, new_figure, place, to_svg
from everlearn.report.lines import Line
from everlearn.report.style import (
    FAINT,
    INK,
    LOW,
    PAPER,
    RULE,
    SHADES,
    SMALL,
    TEXT,
    WIDTH,
    text_width,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TITLE = 24  # pixels above a panel
_CELL = 22  # pixels of a latent
_BLUE = SHADES["blue"].light


class Marks(NamedTuple):
    """The latents of an environment: whether each is masked, whether it is used, and a letter for it."""

    name: str
    masked: Sequence[bool]
    used: Sequence[bool]
    letters: Sequence[str]


def draw_panels(
    panels: Mapping[str, Sequence[Line]],
    name: str,
    x: str,
    y: str,
    words: str,
    borders: Sequence[float] = (),
    top: float | None = 1.0,
) -> str:
    """Draw a panel of lines under each title, as SVG.

    Args:
        name: of the figure; figures on one page need different ones.
        borders: where upright lines go.
        top: where the axes upwards end; None: a little over the highest line of each.
    """
    ends = {title: Ends(lines, LOW, _bounds(lines, top)) for title, lines in panels.items()}
    heights = [round(_TITLE + LOW + one.above + BELOW) for one in ends.values()]
    wide = WIDTH - LEFT - max(one.right for one in ends.values())
    with drawing(name):
        figure = new_figure(WIDTH, sum(heights))
        every = figure.subplots(len(panels), squeeze=False)[:, 0]
        for row, (axes, title) in enumerate(zip(every, panels, strict=True)):
            place(axes, LEFT, sum(heights[row + 1 :]) + BELOW, wide, LOW)
            axes.set(xlabel=x, ylabel=y)
            _draw_panel(axes, title, ends[title], borders)
        return to_svg(figure, words)


def _draw_panel(axes: Axes, title: str, ends: Ends, borders: Sequence[float]) -> None:
    for border in borders:
        axes.axvline(border, color=RULE, linewidth=1)
    number_across(axes, [line.x for line in ends.lines], log=False)
    plot_lines(axes, ends.lines, ends.bounds)
    ends.write(axes)
    where = (0, ends.above)
    axes.annotate(title, (0, 1), where, "axes fraction", "offset points", fontsize=TEXT, color=INK)


def _bounds(lines: Sequence[Line], top: float | None) -> tuple[float, float]:
    if top is not None:
        return 0.0, top
    return reach(ends for line in lines for ends in (line.low, line.high, line.mean))


def draw_marks(marks: Sequence[Marks], name: str, words: str) -> str:
    """Draw a row an environment, a cell a latent, as SVG: filled where it is used, crossed if masked."""
    left = 16 + max(text_width(one.name, SMALL) for one in marks)
    count, tall = len(marks[0].used), len(marks) * _CELL
    cell = min(_CELL, (WIDTH - left - 8) / count)
    with drawing(name):
        figure = new_figure(round(left + count * cell + 8), tall + BELOW + 8)
        axes = figure.subplots()
        place(axes, left, BELOW, count * cell, tall)
        axes.set(xlim=(-0.5, count - 0.5), ylim=(len(marks) - 0.5, -0.5), xlabel="latents")
        axes.grid(False)
        axes.set_yticks(range(len(marks)), [one.name for one in marks], fontsize=SMALL, color=INK)
        axes.locator_params("x", integer=True)
        for row, one in enumerate(marks):
            _mark(axes, row, one)
        return to_svg(figure, words)


def _mark(axes: Axes, row: int, one: Marks) -> None:
    for column, (masked, used, letter) in enumerate(zip(*one[1:], strict=True)):
        if masked:
            axes.text(column, row, "×", color=FAINT, ha="center", va="center", fontsize=SMALL)
            continue
        axes.bar(
            column, 0.86, 0.86, row - 0.43, color=_BLUE if used else "none",
            edgecolor=_BLUE if used else RULE,
        )  # fmt: skip
        ink = PAPER if used else INK
        axes.text(column, row, letter, color=ink, ha="center", va="center", fontsize=SMALL)
