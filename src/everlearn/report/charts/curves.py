"""Accuracy against tasks learned, and accuracy on task 1 against optimiser steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from everlearn.report.charts.accuracy_lines import accuracy_lines, probe_lines
from everlearn.report.charts.axis import BELOW, LEFT
from everlearn.report.charts.figure import drawing, new_figure, place, to_png, to_svg
from everlearn.report.charts.line_labels import LineLabels
from everlearn.report.charts.lines import line_figure, plot_lines
from everlearn.report.charts.style import GRID, PANEL_HEIGHT, WIDTH, stride
from everlearn.report.tables.groups import Group

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDE = (920, 400)  # pixels: width of the figure, height of the plot
_NARROW = (390, 300)
_MAX_TASK_ENDS = 40


class Curves(NamedTuple):
    """The main figure as SVG for wide and for narrow screens, and as PNG."""

    wide: str
    narrow: str
    png: bytes


def draw_curves(groups: Sequence[Group]) -> Curves:
    """Draw accuracy over all tasks learned so far, one line per group."""
    lines = accuracy_lines(groups)
    x = "tasks learned"
    y = "accuracy on all tasks so far"
    description = f"{y}, by method"
    with drawing("curves"):
        figure = line_figure(lines, x, y, size=_WIDE)
        wide = to_svg(figure, description)
        png = to_png(figure)
    with drawing("curves-narrow"):
        narrow = to_svg(line_figure(lines, x, y, size=_NARROW), description)
    return Curves(wide, narrow, png)


def draw_probes(groups: Sequence[Group]) -> str | None:
    """Draw accuracy on task 1 during training, as SVG; None if there are no probe rows.

    Methods with different steps per task get separate panels.
    """
    panels = {
        task_ends: LineLabels(lines, PANEL_HEIGHT)
        for task_ends, lines in probe_lines(groups).items()
    }
    if not panels:
        return None
    heights = [round(BELOW + PANEL_HEIGHT + labels.top_margin) for labels in panels.values()]
    plot_width = WIDTH - LEFT - max(labels.right_margin for labels in panels.values())
    with drawing("probes"):
        figure = new_figure(WIDTH, sum(heights))
        all_axes = figure.subplots(len(panels), squeeze=False)[:, 0]
        for row, (axes, task_ends) in enumerate(zip(all_axes, panels, strict=True)):
            place(axes, LEFT, sum(heights[row + 1 :]) + BELOW, plot_width, PANEL_HEIGHT)
            _draw_task_ends(axes, task_ends)
            plot_lines(axes, panels[task_ends].lines, markers=False)
            panels[task_ends].draw(axes)
        return to_svg(figure, "accuracy on task 1 during training, by method")


def _draw_task_ends(axes: Axes, task_ends: Sequence[int]) -> None:
    every = stride(len(task_ends), _MAX_TASK_ENDS)
    for step in task_ends[every - 1 :: every]:
        axes.axvline(step, color=GRID, linewidth=1)
    meaning = "ends of tasks" if every == 1 else f"every {every} tasks"
    axes.set(xlabel=f"optimiser steps (vertical lines: {meaning})", ylabel="accuracy")
    axes.xaxis.set_major_formatter("{x:,.0f}")
