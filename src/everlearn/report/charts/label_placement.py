"""Placement of labels beside dots, so that none covers another label or a dot or leaves the plot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import cos, hypot, pi, sin
from typing import NamedTuple

from everlearn.report.tables.intervals import Floats

_DOT_RADIUS = 6  # pixels
_LEADER_FROM = 14  # pixels between dot and label from which on a leader line connects them
_DISTANCES = (10, 18, 28, 40, 54, 70, 90, 112)  # pixels
# Directions in sixteenths of a turn. Right, left, above and below come first: they read best.
_DIRECTIONS = (0, 8, 4, 12, 2, 14, 6, 10, 1, 15, 7, 9, 3, 13, 5, 11)
_MAX_SWEEPS = 8

Point = tuple[float, float]


class Box(NamedTuple):
    """A rectangle in pixels from the lower left corner of the plot."""

    left: float
    bottom: float
    width: float
    height: float

    def overlaps(self, other: Box) -> bool:
        """Whether the boxes overlap."""
        across = self.left < other.left + other.width and other.left < self.left + self.width
        up = self.bottom < other.bottom + other.height and other.bottom < self.bottom + self.height
        return across and up

    def nearest(self, point: Point) -> Point:
        """The point of the box nearest to `point`."""
        x = min(max(point[0], self.left), self.left + self.width)
        return x, min(max(point[1], self.bottom), self.bottom + self.height)


class Label(NamedTuple):
    """The place of a label, and the leader line from its dot, if it is far away."""

    box: Box
    leader: tuple[Point, Point] | None


def place_labels(
    dots: Floats, widths: Sequence[float], height: float, plot: tuple[float, float]
) -> list[Label] | None:
    """Place one label beside each dot (N, 2); None if overlaps cannot be avoided."""
    points = [(float(x), float(y)) for x, y in dots]
    side = 2 * _DOT_RADIUS
    obstacles = [Box(x - _DOT_RADIUS, y - _DOT_RADIUS, side, side) for x, y in points]
    candidates = [
        _candidates(point, width, height, plot, obstacles)
        for point, width in zip(points, widths, strict=True)
    ]
    labels = _choose(candidates) if all(candidates) else []
    overlap = any(first.box.overlaps(second.box) for first, second in combinations(labels, 2))
    return None if overlap or not labels else labels


def _candidates(
    dot: Point, width: float, height: float, plot: tuple[float, float], obstacles: Sequence[Box]
) -> list[Label]:
    """Places inside the plot that cover no dot, the nearest first."""
    free = [label for label in _around(dot, width, height) if _fits(label, plot, obstacles)]
    crossed = [sum(_crosses(label, box) for box in obstacles) for label in free]
    # A leader through a dot is as bad as two circles further away.
    order = sorted(range(len(free)), key=lambda k: k + 2 * len(_DIRECTIONS) * crossed[k])
    return [free[k] for k in order]


def _choose(candidates: Sequence[Sequence[Label]]) -> list[Label]:
    """Move one label after the other to its best place, until none moves any more."""
    labels = [choices[0] for choices in candidates]
    for _ in range(_MAX_SWEEPS):
        before = list(labels)
        for index, choices in enumerate(candidates):
            others = [*labels[:index], *labels[index + 1 :]]
            labels[index] = _best(choices, others)
        if labels == before:
            break
    return labels


def _best(choices: Sequence[Label], others: Sequence[Label]) -> Label:
    """Return the first choice without overlap, else the first of the least bad ones."""
    costs = []
    for label in choices:
        costs.append(_cost(label, others))
        if costs[-1] == (0, 0):
            break
    return choices[costs.index(min(costs))]


def _cost(label: Label, others: Sequence[Label]) -> tuple[int, int]:
    """Count the labels covered, which is worst, and the labels that a leader runs through."""
    covered = sum(label.box.overlaps(other.box) for other in others)
    crossed = sum(_crosses(label, other.box) + _crosses(other, label.box) for other in others)
    return covered, crossed


def _crosses(label: Label, box: Box) -> bool:
    """Whether the label's leader runs through a box, tested at 13 points of it."""
    if label.leader is None:
        return False
    (x, y), (u, v) = label.leader
    steps = (k / 12 for k in range(13))
    return any(Box(x + s * (u - x), y + s * (v - y), 0, 0).overlaps(box) for s in steps)


def _around(dot: Point, width: float, height: float) -> Iterator[Label]:
    x, y = dot
    for distance in _DISTANCES:
        for direction in _DIRECTIONS:
            across = round(cos(direction * pi / 8), 6)
            up = round(sin(direction * pi / 8), 6)
            left = x + distance * across - width * (1 - _sign(across)) / 2
            bottom = y + distance * up - height * (1 - _sign(up)) / 2
            yield _label(dot, Box(left, bottom, width, height))


def _label(dot: Point, box: Box) -> Label:
    end = box.nearest(dot)
    far = hypot(end[0] - dot[0], end[1] - dot[1]) > _LEADER_FROM
    return Label(box, (dot, end) if far else None)


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _fits(label: Label, plot: tuple[float, float], obstacles: Sequence[Box]) -> bool:
    box = label.box
    right_margin = plot[0] - box.left - box.width
    top_margin = plot[1] - box.bottom - box.height
    inside = min(box.left, box.bottom, right_margin, top_margin) >= 0
    return inside and not any(box.overlaps(obstacle) for obstacle in obstacles)
