"""Accuracy against tasks learned, and on the first task against steps of the optimiser."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from everlearn.report.chart.axis import BELOW, LEFT
from everlearn.report.chart.lines import line_figure, plot_lines
from everlearn.report.ends import Ends
from everlearn.report.figure import drawing, new_figure, place, to_png, to_svg
from everlearn.report.groups import Group
from everlearn.report.lines import accuracy_lines, probe_lines
from everlearn.report.style import LOW, RULE, WIDTH, stride

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_BORDERS = 40


def draw_curves(groups: Sequence[Group]) -> tuple[str, bytes]:
    """Draw accuracy over the tasks met, as SVG and as PNG."""
    with drawing("curves"):
        figure = line_figure(
            accuracy_lines(groups), "tasks learned", "accuracy on all tasks so far"
        )
        return to_svg(figure, "accuracy on all tasks so far, by method"), to_png(figure)


def draw_probes(groups: Sequence[Group]) -> str | None:
    """Draw accuracy on the first task while training, as SVG; None where nothing was probed.

    Methods whose tasks end at different steps have a panel each.
    """
    panels = {borders: Ends(lines, LOW) for borders, lines in probe_lines(groups).items()}
    if not panels:
        return None
    heights = [round(BELOW + LOW + ends.above) for ends in panels.values()]
    wide = WIDTH - LEFT - max(ends.right for ends in panels.values())
    with drawing("probes"):
        figure = new_figure(WIDTH, sum(heights))
        every = figure.subplots(len(panels), squeeze=False)[:, 0]
        for row, (axes, borders) in enumerate(zip(every, panels, strict=True)):
            place(axes, LEFT, sum(heights[row + 1 :]) + BELOW, wide, LOW)
            _draw_borders(axes, borders)
            plot_lines(axes, panels[borders].lines, markers=False)
            panels[borders].write(axes)
        return to_svg(figure, "accuracy on the first task while training, by method")


def _draw_borders(axes: Axes, borders: Sequence[int]) -> None:
    every = stride(len(borders), _MOST_BORDERS)
    for step in borders[every - 1 :: every]:
        axes.axvline(step, color=RULE, linewidth=1)
    which = "ends of tasks" if every == 1 else f"every {every} tasks"
    axes.set(xlabel=f"steps of the optimiser (upright lines: {which})", ylabel="accuracy")
    axes.xaxis.set_major_formatter("{x:,.0f}")
