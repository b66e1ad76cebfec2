"""Labels at the right ends of lines, or a legend where they would overlap."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np

from everlearn.report.charts.accuracy_lines import Line
from everlearn.report.charts.style import SMALL, TEXT, WIDTH, text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_LABEL = 0.29  # longest label beside a plot, as a fraction of the figure's width
_LINE_HEIGHT = TEXT + 3  # pixels
_HANDLE = 56  # pixels for the line sample before a legend label
_MARGIN = 64  # pixels beside a legend
_LETTER_WIDTH = 0.66  # of the font size, see `text_width`


class Legend:
    """Labels in columns above a plot, each with a sample of its line or dot."""

    def __init__(self, labels: Sequence[str], width: float = WIDTH) -> None:
        """Wrap long labels and choose the number of columns that fit a figure of this width."""
        self._letters = int((width - _MARGIN - _HANDLE) / (_LETTER_WIDTH * SMALL))
        wrapped = [self._wrap(label) for label in labels]
        self.columns = _columns([_width(label) for label in wrapped], width)
        lines = [label.count("\n") + 1 for label in wrapped]
        tallest = max(sum(column) for column in np.array_split(lines, self.columns))
        self.height = 18 + 1.55 * SMALL * float(tallest)  # pixels

    def draw(self, axes: Axes) -> None:
        """Draw the legend of everything plotted in the axes."""
        handles, labels = axes.get_legend_handles_labels()
        axes.legend(
            handles, [self._wrap(label) for label in labels], loc="lower left",
            bbox_to_anchor=(0, 1.02), borderaxespad=0, ncols=self.columns,
        )  # fmt: skip

    def _wrap(self, label: str) -> str:
        return "\n".join(wrap(label, self._letters)) or label


class LineLabels:
    """Positions of the labels of lines, and the margins that they need."""

    def __init__(
        self,
        lines: Sequence[Line],
        height: float,
        bounds: tuple[float, float] = (0.0, 1.0),
        width: float = WIDTH,
    ) -> None:
        """Find positions beside a plot of this height in pixels, or fall back to a legend.

        Args:
            bounds: of the y axis.
            width: of the figure in pixels.
        """
        self.lines = lines
        self.height = height
        self.bounds = bounds
        self.legend = Legend([line.label for line in lines], width)
        self._longest = max(text_width(line.label, TEXT) for line in lines)
        self.positions = self._positions_beside(width)

    @property
    def right_margin(self) -> float:
        """Pixels needed to the right of the plot."""
        return 24.0 if self.positions is None else 16 + self._longest

    @property
    def top_margin(self) -> float:
        """Pixels needed above the plot."""
        if self.positions is None:
            return self.legend.height
        return max(12.0, max(self.positions) - self.height + 0.7 * TEXT)

    def draw(self, axes: Axes) -> None:
        """Draw the labels or the legend."""
        if self.positions is None:
            self.legend.draw(axes)
            return
        for line, position in zip(self.lines, self.positions, strict=True):
            end = (float(line.x[-1]), float(line.mean[-1]))
            offset = (10, position - self._end_pixel(line))
            axes.annotate(line.label, end, offset, textcoords="offset points", va="center")

    def _end_pixel(self, line: Line) -> float:
        """Height of the line's right end above the bottom of the plot, in pixels."""
        low, high = self.bounds
        return (float(line.mean[-1]) - low) / (high - low) * self.height

    def _positions_beside(self, width: float) -> list[float] | None:
        same_end = len({float(line.x[-1]) for line in self.lines}) == 1
        if not same_end or self._longest > _MAX_LABEL * width:
            return None
        # Not below the axis, where the labels of its ticks stand.
        ends = [max(self._end_pixel(line), TEXT / 2) for line in self.lines]
        return separate(ends, _LINE_HEIGHT, TEXT / 2)


def _columns(label_widths: Sequence[float], width: float) -> int:
    """Largest number of legend columns that fit the figure."""
    for columns in range(min(4, len(label_widths)), 1, -1):
        # matplotlib fills one column after the other, in the same way.
        widest = [max(column) for column in np.array_split(label_widths, columns)]
        if sum(_HANDLE + pixels for pixels in widest) <= width - _MARGIN:
            return columns
    return 1


def _width(label: str) -> float:
    return max(text_width(line, SMALL) for line in label.split("\n"))


def separate(positions: Sequence[float], gap: float, floor: float = -np.inf) -> list[float] | None:
    """Push positions apart until they keep the gap; None if a label would leave its line.

    Args:
        floor: no position is pushed below it.
    """
    order = sorted(range(len(positions)), key=lambda k: positions[k])
    moved = list(positions)
    for _ in range(200):
        for lower, upper in pairwise(order):
            push = max(0.0, gap - (moved[upper] - moved[lower])) / 2
            moved[lower] = max(moved[lower] - push, floor)
            moved[upper] += push
    farthest = max(abs(new - old) for new, old in zip(moved, positions, strict=True))
    # Further away than this, a label is nearer to another line than to its own.
    return moved if farthest <= 0.6 * gap else None
