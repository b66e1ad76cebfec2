"""An environment of white sprites: shapes at places, in sizes and at angles drawn from a continuum."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from everlearn.factors import UNIFORMS, Factors, Interval, Product, Values, canonical, theta
from everlearn.render.canvas import Canvas
from everlearn.shapes import Outlines
from everlearn.stream.environments.lanes import Lane
from everlearn.stream.environments.names import Environment
from everlearn.stream.shades import shader
from everlearn.stream.sprites import Sprites
from everlearn.stream.task import Ints, Pictures, Split


@dataclass(frozen=True, eq=False)
class Inverted:
    """Pictures, drawn as levels, with black and white exchanged."""

    pictures: Pictures

    def drawer(self, device: str) -> Callable[[Tensor], Tensor]:
        """Return a function from rows on the device to images there."""
        draw, shade = self.pictures.drawer(device), shader("float32", device)
        return lambda rows: shade(255 - draw(rows))


@dataclass(frozen=True, eq=False)
class SpriteSet:
    """A set of shapes with factors of a space, as many rows of each.

    Attributes:
        first: the id of the first class.
    """

    outlines: Outlines
    space: Product
    canvas: Canvas
    first: int
    inverse: bool

    def train(self, lane: Lane) -> Split:
        """Shapes in turn, with factors drawn anew for every row."""
        which = np.arange(lane.rows) % len(self.outlines)
        return self._split(which, self.space.sample(lane.uniforms(UNIFORMS)))

    def test(self, lane: Lane) -> Split:
        """The same with other factors: those of the lane."""
        return self.train(lane)

    def canonical(self) -> Split:
        """The canonical image of each shape."""
        count = len(self.outlines)
        return self._split(np.arange(count), canonical(count))

    def _split(self, which: Ints, factors: Factors) -> Split:
        maps = theta(factors)
        canvas = replace(self.canvas, dtype="uint8") if self.inverse else self.canvas
        sprites = Sprites(self.outlines, which, maps, factors.color, canvas)
        pictures = Inverted(sprites) if self.inverse else sprites
        return Split(self.first + which, pictures, factors, maps)


def space_of(environment: Environment) -> Product:
    """The factors that vary in an environment, and the values of those that do not."""
    place = Interval(0.0, 1.0) if environment.moving else Values((0.5,))
    return Product(
        scale=Interval(0.5, 1.0) if environment.scaled else Values((0.75,)),
        orientation=Interval(0.0, 2 * math.pi) if environment.turned else Values((0.0,)),
        x=place,
        y=place,
    )
