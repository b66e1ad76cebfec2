"""Accuracy against tasks learned, and on the first task against steps of the optimiser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from everlearn.report.ends import Ends
from everlearn.report.figure import drawing, new_figure, place, to_png, to_svg
from everlearn.report.groups import Group
from everlearn.report.lines import Line, accuracy_lines, probe_lines
from everlearn.report.style import LOW, RULE, TALL, WIDTH, Ink, choose_inks, stride

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEFT, _BELOW = 56, 52  # pixels beside and below a plot, for its axes
_MOST_DOTS = 25
_MOST_BORDERS = 40


def draw_curves(groups: Sequence[Group]) -> tuple[str, bytes]:
    """Draw accuracy over the tasks met, as SVG and as PNG."""
    ends = Ends(accuracy_lines(groups), TALL)
    with drawing("curves"):
        figure = new_figure(WIDTH, round(_BELOW + TALL + ends.above))
        axes = figure.subplots()
        place(axes, _LEFT, _BELOW, WIDTH - _LEFT - ends.right, TALL)
        _draw(axes, ends.lines, _inks(groups))
        ends.write(axes)
        axes.set(xlabel="tasks learned", ylabel="accuracy on all tasks so far")
        axes.locator_params("x", integer=True)
        return to_svg(figure, "accuracy on all tasks so far, by method"), to_png(figure)


def draw_probes(groups: Sequence[Group]) -> str | None:
    """Draw accuracy on the first task while training, as SVG; None where nothing was probed.

    Methods whose tasks end at different steps have a panel each.
    """
    panels = {borders: Ends(lines, LOW) for borders, lines in probe_lines(groups).items()}
    if not panels:
        return None
    heights = [round(_BELOW + LOW + ends.above) for ends in panels.values()]
    wide = WIDTH - _LEFT - max(ends.right for ends in panels.values())
    with drawing("probes"):
        figure = new_figure(WIDTH, sum(heights))
        every = figure.subplots(len(panels), squeeze=False)[:, 0]
        for row, (axes, borders) in enumerate(zip(every, panels, strict=True)):
            place(axes, _LEFT, sum(heights[row + 1 :]) + _BELOW, wide, LOW)
            _draw_borders(axes, borders)
            _draw(axes, panels[borders].lines, _inks(groups), dots=False)
            panels[borders].write(axes)
        return to_svg(figure, "accuracy on the first task while training, by method")


def _inks(groups: Sequence[Group]) -> dict[str, Ink]:
    return choose_inks({group.label: group.method for group in groups})


def _draw(axes: Axes, lines: Sequence[Line], inks: Mapping[str, Ink], dots: bool = True) -> None:
    for line in lines:
        ink = inks[line.label]
        axes.fill_between(line.x, line.low, line.high, color=ink.color, alpha=0.15, linewidth=0)
        marker = ink.marker if dots and len(line.x) <= _MOST_DOTS else ""
        axes.plot(
            line.x, line.mean, ink.dashes, color=ink.color, label=line.label, linewidth=2,
            marker=marker, markersize=5, solid_capstyle="round", clip_on=False,
        )  # fmt: skip
    axes.set_ylim(0, 1)
    axes.margins(x=0.01)


def _draw_borders(axes: Axes, borders: Sequence[int]) -> None:
    every = stride(len(borders), _MOST_BORDERS)
    for step in borders[every - 1 :: every]:
        axes.axvline(step, color=RULE, linewidth=1)
    which = "ends of tasks" if every == 1 else f"every {every} tasks"
    axes.set(xlabel=f"steps of the optimiser (upright lines: {which})", ylabel="accuracy")
    axes.xaxis.set_major_formatter("{x:,.0f}")
