"""Room for names beside dots: none covers another, or a dot, or leaves the picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import cos, hypot, pi, sin
from typing import NamedTuple

from everlearn.report.spread import Floats

_DOT = 6  # pixels from the middle of a dot to its edge
_FAR = 14  # pixels from a dot to its name, from which on a line leads to it
_RADII = (10, 18, 28, 40, 54, 70, 90, 112)
# Right, left, above and below first: the eye finds these at once.
_TURNS = (0, 8, 4, 12, 2, 14, 6, 10, 1, 15, 7, 9, 3, 13, 5, 11)  # of 16
_SWEEPS = 8

Point = tuple[float, float]


class Box(NamedTuple):
    """A rectangle in pixels from the lower left corner of the picture."""

    left: float
    low: float
    width: float
    height: float

    def meets(self, other: Box) -> bool:
        """Whether two boxes share a point."""
        across = self.left < other.left + other.width and other.left < self.left + self.width
        return across and self.low < other.low + other.height and other.low < self.low + self.height

    def nearest(self, point: Point) -> Point:
        """The point of the box that is nearest to another."""
        x = min(max(point[0], self.left), self.left + self.width)
        return x, min(max(point[1], self.low), self.low + self.height)


class Name(NamedTuple):
    """Where a name goes, and the line that leads there from its dot; None where it is near."""

    box: Box
    line: tuple[Point, Point] | None


def find_room(
    dots: Floats, widths: Sequence[float], height: float, picture: tuple[float, float]
) -> list[Name] | None:
    """Find a place a name beside its dot (N, 2); None where they cannot be kept apart."""
    points = [(float(x), float(y)) for x, y in dots]
    solid = [Box(x - _DOT, y - _DOT, 2 * _DOT, 2 * _DOT) for x, y in points]
    choices = [
        _choices(point, width, height, picture, solid)
        for point, width in zip(points, widths, strict=True)
    ]
    names = _settle(choices) if all(choices) else []
    together = any(one.box.meets(other.box) for one, other in combinations(names, 2))
    return None if together or not names else names


def _choices(
    dot: Point, width: float, height: float, picture: tuple[float, float], solid: Sequence[Box]
) -> list[Name]:
    """Places in the picture that cover no dot, the near ones first."""
    free = [name for name in _around(dot, width, height) if _fits(name, picture, solid)]
    through = [sum(_crosses(name, other) for other in solid) for name in free]
    # A line through a dot is as bad as two circles further away.
    order = sorted(range(len(free)), key=lambda k: k + 2 * len(_TURNS) * through[k])
    return [free[k] for k in order]


def _settle(choices: Sequence[Sequence[Name]]) -> list[Name]:
    """Let one name after the other take its best place, until none wants to move."""
    names = [each[0] for each in choices]
    for _ in range(_SWEEPS):
        before = list(names)
        for place, each in enumerate(choices):
            others = [*names[:place], *names[place + 1 :]]
            names[place] = _best(each, others)
        if names == before:
            break
    return names


def _best(choices: Sequence[Name], others: Sequence[Name]) -> Name:
    """Take the first place that costs nothing, else the first of the cheapest."""
    costs = []
    for name in choices:
        costs.append(_cost(name, others))
        if costs[-1] == (0, 0):
            break
    return choices[costs.index(min(costs))]


def _cost(name: Name, others: Sequence[Name]) -> tuple[int, int]:
    """Count the names covered, which is worst, and those that a line runs through."""
    covered = sum(name.box.meets(other.box) for other in others)
    crossed = sum(_crosses(name, other.box) + _crosses(other, name.box) for other in others)
    return covered, crossed


def _crosses(name: Name, other: Box) -> bool:
    """Whether the line to a name runs through a box."""
    if name.line is None:
        return False
    (x, y), (u, v) = name.line
    steps = (k / 12 for k in range(13))
    return any(Box(x + s * (u - x), y + s * (v - y), 0, 0).meets(other) for s in steps)


def _around(dot: Point, width: float, height: float) -> Iterator[Name]:
    x, y = dot
    for radius in _RADII:
        for turn in _TURNS:
            across, up = round(cos(turn * pi / 8), 6), round(sin(turn * pi / 8), 6)
            left = x + radius * across - width * (1 - _sign(across)) / 2
            low = y + radius * up - height * (1 - _sign(up)) / 2
            yield _name(dot, Box(left, low, width, height))


def _name(dot: Point, box: Box) -> Name:
    end = box.nearest(dot)
    return Name(box, (dot, end) if hypot(end[0] - dot[0], end[1] - dot[1]) > _FAR else None)


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _fits(name: Name, picture: tuple[float, float], solid: Sequence[Box]) -> bool:
    box, (wide, tall) = name.box, picture
    inside = min(box.left, box.low, wide - box.left - box.width, tall - box.low - box.height) >= 0
    return inside and not any(box.meets(dot) for dot in solid)
