"""Outlines: closed curves in box units, with exact geometry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everlearn import curves
from everlearn.philox import Floats

Ints = NDArray[np.int64]
POINTS = 1000


@dataclass(frozen=True, eq=False)
class Outlines:
    """A batch of closed curves in box units.

    Attributes:
        coefficients: (B, P, 4, 2) cubic pieces; unused ones are the start point, repeated.
        pieces: (B,) how many pieces each curve has.
        orders: (B,) 1 where all pieces are straight, 3 otherwise.
    """

    coefficients: Floats
    pieces: Ints
    orders: Ints

    def __len__(self) -> int:
        """Count the curves."""
        return len(self.pieces)

    def __getitem__(self, row: int) -> Outline:
        """Return one curve."""
        count = int(self.pieces[row])
        return Outline(self.coefficients[row, :count], int(self.orders[row]))

    def take(self, rows: ArrayLike) -> Outlines:
        """Pick curves by row, in that order."""
        index = np.asarray(rows)
        return Outlines(self.coefficients[index], self.pieces[index], self.orders[index])

    @property
    def areas(self) -> Floats:
        """Enclosed areas (B,), exact."""
        return curves.area_and_centroid(self.coefficients)[0]

    @property
    def centroids(self) -> Floats:
        """Centroids of the enclosed areas (B, 2), exact."""
        return curves.area_and_centroid(self.coefficients)[1]

    @property
    def boxes(self) -> tuple[Floats, Floats]:
        """Lowest and highest corners of the bounding boxes, (B, 2) each, exact."""
        return curves.bounding_box(self.coefficients)


@dataclass(frozen=True, eq=False)
class Outline:
    """One closed curve in box units: `coefficients` (P, 4, 2), `order` 1 or 3."""

    coefficients: Floats
    order: int

    @property
    def points(self) -> Floats:
        """1000 points along the curve (1000, 2), all knots among them, the first not repeated."""
        count = len(self.coefficients)
        parts = []
        for piece in range(count):
            size = POINTS // count + (piece < POINTS % count)
            one = self.coefficients[None, piece : piece + 1]
            parts.append(curves.evaluate(one, np.arange(size) / size)[0, 0])
        return np.concatenate(parts)

    @property
    def area(self) -> float:
        """Enclosed area, exact."""
        return float(curves.area_and_centroid(self.coefficients[None])[0][0])

    @property
    def centroid(self) -> Floats:
        """Centroid of the enclosed area (2,), exact."""
        center: Floats = curves.area_and_centroid(self.coefficients[None])[1][0]
        return center

    @property
    def box(self) -> tuple[Floats, Floats]:
        """Lowest and highest corner of the bounding box, (2,) each, exact."""
        low, high = curves.bounding_box(self.coefficients[None])
        return low[0], high[0]


def join(parts: Sequence[Outlines]) -> Outlines:
    """Put batches of one style behind one another; one batch at least."""
    return Outlines(
        np.concatenate([part.coefficients for part in parts]),
        np.concatenate([part.pieces for part in parts]),
        np.concatenate([part.orders for part in parts]),
    )
