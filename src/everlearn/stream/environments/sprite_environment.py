"""SpriteEnvironment: white sprites with position, scale and orientation drawn from a continuum."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from everlearn.factors import (
    UNIFORMS_PER_SAMPLE,
    Factors,
    Interval,
    Product,
    Values,
    canonical_factors,
    theta,
)
from everlearn.render.canvas import Canvas
from everlearn.shapes import Outlines
from everlearn.stream.environments.draws import RowDraws
from everlearn.stream.environments.environment import Environment
from everlearn.stream.levels import level_decoder
from everlearn.stream.sprites.images import SpriteImages
from everlearn.stream.task import ImageSource, Ints, Split


@dataclass(frozen=True, eq=False)
class InvertedImages:
    """Images with black and white swapped; the source must return 8-bit levels."""

    images: ImageSource

    def loader(self, device: str) -> Callable[[Tensor], Tensor]:
        """Return a function from row numbers to images, both on the device."""
        load = self.images.loader(device)
        decode = level_decoder("float32", device)
        return lambda rows: decode(255 - load(rows))


@dataclass(frozen=True, eq=False)
class SpriteEnvironment:
    """A set of shapes with factors from a space; every shape has equally many rows.

    Attributes:
        first_class: the id of the first class.
    """

    outlines: Outlines
    space: Product
    canvas: Canvas
    first_class: int
    inverse: bool

    def train(self, draws: RowDraws) -> Split:
        """Make a split that cycles through the shapes, with new factors for every row."""
        which = np.arange(draws.rows) % len(self.outlines)
        return self._split(which, self.space.sample(draws.uniforms(UNIFORMS_PER_SAMPLE)))

    def test(self, draws: RowDraws) -> Split:
        """Make a split like `train`; only the draws differ."""
        return self.train(draws)

    def canonical(self) -> Split:
        """Make a split of the canonical image of each shape."""
        count = len(self.outlines)
        return self._split(np.arange(count), canonical_factors(count))

    def _split(self, which: Ints, factors: Factors) -> Split:
        maps = theta(factors)
        canvas = replace(self.canvas, dtype="uint8") if self.inverse else self.canvas
        sprites = SpriteImages(self.outlines, which, maps, factors.color, canvas)
        images = InvertedImages(sprites) if self.inverse else sprites
        return Split(self.first_class + which, images, factors, maps)


def factor_space(environment: Environment) -> Product:
    """Return the space of factors: intervals for what varies, single values for the rest."""
    position = Interval(0.0, 1.0) if environment.moving else Values((0.5,))
    return Product(
        scale=Interval(0.5, 1.0) if environment.scaled else Values((0.75,)),
        orientation=Interval(0.0, 2 * math.pi) if environment.turned else Values((0.0,)),
        x=position,
        y=position,
    )
