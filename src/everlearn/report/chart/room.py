"""Room for names beside dots: none covers another, or a dot, or leaves the picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import cos, pi, sin
from typing import NamedTuple

from everlearn.report.spread import Floats

_DOT = 6  # pixels from the middle of a dot to its edge
_NEAR = 10
_RADII = (_NEAR, 18, 28, 40, 54, 70, 90)
# Right, left, above and below first: the eye finds these at once.
_TURNS = (0, 4, 2, 6, 1, 7, 3, 5)


class Box(NamedTuple):
    """A rectangle in pixels from the lower left corner; far where a line must lead to it."""

    left: float
    low: float
    width: float
    height: float
    far: bool = False

    def meets(self, other: Box) -> bool:
        """Whether two boxes share a point."""
        across = self.left < other.left + other.width and other.left < self.left + self.width
        return across and self.low < other.low + other.height and other.low < self.low + self.height


def find_room(
    dots: Floats, widths: Sequence[float], height: float, picture: tuple[float, float]
) -> list[Box] | None:
    """Find a box a name beside its dot (N, 2), the wide ones first; None where one has no room."""
    solid = [Box(x - _DOT, y - _DOT, 2 * _DOT, 2 * _DOT) for x, y in dots.tolist()]
    found: dict[int, Box] = {}
    for dot in sorted(range(len(widths)), key=lambda dot: -widths[dot]):
        taken = [*solid, *found.values()]
        x, y = dots[dot].tolist()
        free = (
            box
            for box in _around(x, y, widths[dot], height)
            if _inside(box, picture) and not any(box.meets(other) for other in taken)
        )
        box = next(free, None)
        if box is None:
            return None
        found[dot] = box
    return [found[dot] for dot in range(len(widths))]


def _around(x: float, y: float, width: float, height: float) -> Iterator[Box]:
    for radius in _RADII:
        for turn in _TURNS:
            across, up = round(cos(turn * pi / 4), 6), round(sin(turn * pi / 4), 6)
            left = x + radius * across - width * (1 - _sign(across)) / 2
            low = y + radius * up - height * (1 - _sign(up)) / 2
            yield Box(left, low, width, height, radius > _RADII[1])


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _inside(box: Box, picture: tuple[float, float]) -> bool:
    wide, tall = picture
    return (
        box.left >= 0 and box.low >= 0
        and box.left + box.width <= wide and box.low + box.height <= tall
    )  # fmt: skip
