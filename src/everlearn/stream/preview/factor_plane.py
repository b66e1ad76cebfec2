"""A scatter plot of training and test images over two factors."""

from __future__ import annotations

import math
from itertools import combinations
from typing import NamedTuple

import numpy as np

from everlearn.core.random import Floats
from everlearn.factors import Factors
from everlearn.stream import Task
from everlearn.stream.preview.page import FAINT, GAP, INK, NEW, OLD, RULE, SMALL, Page

SIDE = 340
BELOW = 4 * SMALL
_INSET = 12
_RANGES = {"x": (0.0, 1.0), "y": (0.0, 1.0), "scale": (0.5, 1.0), "orientation": (0.0, 2 * math.pi)}
_BINS = 6
_MAX_DOTS = 600


class Axis(NamedTuple):
    """A factor and the ends of its axis."""

    name: str
    low: float
    high: float

    def positions(self, factors: Factors) -> Floats:
        """Return the positions of rows on the axis, 0 to 1."""
        values = np.asarray(getattr(factors, self.name), np.float64)
        return np.asarray((values - self.low) / (self.high - self.low), np.float64)

    @property
    def ends(self) -> list[str]:
        """Both ends as text."""
        if self.name == "orientation":
            return [f"{math.degrees(value):.0f}°" for value in (self.low, self.high)]
        return [f"{value:.3g}" for value in (self.low, self.high)]


def draw_plane(page: Page, task: Task, x: int, y: int) -> None:
    """Plot the training rows of a task as large dots and its test rows as small ones."""
    train, test = task.train.factors, task.test.factors
    if train is None or test is None:
        return
    axes = most_telling_axes(train, test)
    page.pen.rectangle((x, y, x + SIDE, y + SIDE), outline=RULE, width=2)
    for factors, radius, ink in ((train, 6, NEW), (test, 4, OLD)):
        for u, v in _dots(factors, axes):
            dot = (x + _INSET + u * (SIDE - 2 * _INSET), y + _INSET + v * (SIDE - 2 * _INSET))
            page.pen.circle(dot, radius, fill=ink)
    _draw_axes(page, x, y, axes)
    page.text(
        x, y + SIDE + GAP + 2 * SMALL, f"training images of task {task.index + 1}", SMALL, NEW
    )
    page.text(x + SIDE, y + SIDE + GAP + 2 * SMALL, "test images", SMALL, OLD, "ra")


def _draw_axes(page: Page, x: int, y: int, axes: tuple[Axis, Axis]) -> None:
    page.text(x + SIDE / 2, y + SIDE + GAP, axes[0].name, SMALL, INK, "ma")
    page.text(x - GAP, y + SIDE / 2, axes[1].name, SMALL, INK, "rm")
    for place, value in enumerate(axes[0].ends):
        across = x + _INSET + place * (SIDE - 2 * _INSET)
        page.text(across, y + SIDE + GAP, value, SMALL, FAINT, "ma")
    for place, value in enumerate(axes[1].ends):
        page.text(x - GAP, y + _INSET + place * (SIDE - 2 * _INSET), value, SMALL, FAINT, "rm")


def most_telling_axes(train: Factors, test: Factors) -> tuple[Axis, Axis]:
    """Choose the two factors over which train and test differ most, or which depend most on each other."""
    pairs = list(combinations([_axis(name, train, test) for name in _RANGES], 2))
    return max(pairs, key=lambda pair: round(_contrast(train, test, pair), 1))


def _axis(name: str, train: Factors, test: Factors) -> Axis:
    """Return the default range of a factor, extended to rows that lie beyond it."""
    values = [*_RANGES[name], *getattr(train, name).tolist(), *getattr(test, name).tolist()]
    return Axis(name, min(values), max(values))


def _contrast(train: Factors, test: Factors, axes: tuple[Axis, Axis]) -> float:
    trained = _histogram(train, axes)
    tested = _histogram(test, axes)
    independent = np.outer(trained.sum(axis=1), trained.sum(axis=0))
    return float(np.abs(trained - tested).sum() + np.abs(trained - independent).sum())


def _histogram(factors: Factors, axes: tuple[Axis, Axis]) -> Floats:
    """Return the fraction of rows in each cell of a coarse grid over two factors."""
    across, down = (axis.positions(factors) for axis in axes)
    counts = np.histogram2d(across, down, bins=_BINS, range=((0, 1), (0, 1)))[0]
    return np.asarray(counts / max(float(counts.sum()), 1.0), np.float64)


def _dots(factors: Factors, axes: tuple[Axis, Axis]) -> Floats:
    """Return distinct positions (N, 2) in the unit square, thinned out evenly to a maximum."""
    positions = np.stack([axis.positions(factors) for axis in axes], axis=1)
    found = np.unique(np.round(positions, 3), axis=0)
    return np.asarray(found[:: -(-len(found) // _MAX_DOTS) or 1], np.float64)
