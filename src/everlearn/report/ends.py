"""Labels at the ends of lines, or a legend where they would collide."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from everlearn.report.lines import Line
from everlearn.report.style import SMALL, TEXT, WIDTH, text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LONGEST = 185  # pixels of a label that fits beside the plot
_GAP = TEXT + 3
_HANDLE = 56  # pixels for a line before its label


class Legend:
    """Labels in columns above a plot, each after its line or dot."""

    def __init__(self, labels: Sequence[str]) -> None:
        """Find out how many columns of labels have room."""
        self.columns = _columns([text_width(label, SMALL) for label in labels])
        self.height = 18 + 1.55 * SMALL * -(-len(labels) // self.columns)  # pixels

    def write(self, axes: Axes) -> None:
        """Write the legend of what is drawn in the axes."""
        corner = (0, 1.02)
        axes.legend(loc="lower left", bbox_to_anchor=corner, borderaxespad=0, ncols=self.columns)


class Ends:
    """Where the labels of some lines go."""

    def __init__(
        self, lines: Sequence[Line], height: float, bounds: tuple[float, float] = (0.0, 1.0)
    ) -> None:
        """Find places beside a plot of this height in pixels, or else columns above it.

        Args:
            bounds: of the axis upwards.
        """
        self.lines, self.height, self.bounds = lines, height, bounds
        self.legend = Legend([line.label for line in lines])
        self.places = self._beside()

    @property
    def right(self) -> float:
        """Pixels needed beside the plot."""
        longest = max(text_width(line.label, TEXT) for line in self.lines)
        return 24.0 if self.places is None else 16 + longest

    @property
    def above(self) -> float:
        """Pixels needed above the plot."""
        if self.places is None:
            return self.legend.height
        return max(12.0, max(self.places) - self.height + 0.7 * TEXT)

    def write(self, axes: Axes) -> None:
        """Write the labels."""
        if self.places is None:
            self.legend.write(axes)
            return
        for line, place in zip(self.lines, self.places, strict=True):
            end = (float(line.x[-1]), float(line.mean[-1]))
            shift = (10, place - self._pixel(line))
            axes.annotate(line.label, end, shift, textcoords="offset points", va="center")

    def _pixel(self, line: Line) -> float:
        """Where a line ends, from the bottom of the plot."""
        low, high = self.bounds
        return (float(line.mean[-1]) - low) / (high - low) * self.height

    def _beside(self) -> list[float] | None:
        together = len({float(line.x[-1]) for line in self.lines}) == 1
        if not together or max(text_width(line.label, TEXT) for line in self.lines) > _LONGEST:
            return None
        return spread([self._pixel(line) for line in self.lines], _GAP)


def _columns(lengths: Sequence[float]) -> int:
    """How many columns of labels, filled one after the other, are as wide as the plot."""
    for columns in range(min(4, len(lengths)), 1, -1):
        longest = [max(part) for part in np.array_split(lengths, columns)]  # as matplotlib does
        if sum(_HANDLE + pixels for pixels in longest) <= WIDTH - 64:
            return columns
    return 1


def spread(places: Sequence[float], gap: float) -> list[float] | None:
    """Push places apart until they keep a gap; None where one would be nearer to another's line."""
    order, moved = sorted(range(len(places)), key=lambda k: places[k]), list(places)
    for _ in range(200):
        for low, high in pairwise(order):
            push = max(0.0, gap - (moved[high] - moved[low])) / 2
            moved[low], moved[high] = moved[low] - push, moved[high] + push
    far = max(abs(new - old) for new, old in zip(moved, places, strict=True))
    return moved if far <= 0.6 * gap else None
