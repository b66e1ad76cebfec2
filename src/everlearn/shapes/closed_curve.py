"""`Outline` and the batch `Outlines`: closed curves in box units, with exact geometry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everlearn.core.random import Floats
from everlearn.shapes import geometry

Ints = NDArray[np.int64]
NUM_POINTS = 1000


@dataclass(frozen=True, eq=False)
class Outlines:
    """A batch of closed curves in box units.

    Attributes:
        coefficients: (B, P, 4, 2) cubic pieces; unused pieces repeat the start point.
        pieces: (B,) number of pieces of each curve.
        orders: (B,) spline order, 1 for straight lines and 3 for cubics.
    """

    coefficients: Floats
    pieces: Ints
    orders: Ints

    def __len__(self) -> int:
        """Return the number of curves."""
        return len(self.pieces)

    def __getitem__(self, row: int) -> Outline:
        """Return one curve."""
        count = int(self.pieces[row])
        return Outline(self.coefficients[row, :count], int(self.orders[row]))

    def take(self, rows: ArrayLike) -> Outlines:
        """Return the curves of some rows, in that order."""
        index = np.asarray(rows)
        return Outlines(self.coefficients[index], self.pieces[index], self.orders[index])

    @property
    def points(self) -> Floats:
        """1000 points along each curve (B, 1000, 2), including all knots; the first is not repeated."""
        out = np.empty((len(self), NUM_POINTS, 2))
        for count in np.unique(self.pieces).tolist():
            rows = np.flatnonzero(self.pieces == count)
            out[rows] = _sample_points(self.coefficients[rows, :count])
        return out

    @property
    def areas(self) -> Floats:
        """Exact enclosed areas (B,)."""
        return geometry.area_and_centroid(self.coefficients)[0]

    @property
    def centroids(self) -> Floats:
        """Exact centroids of the enclosed areas (B, 2)."""
        return geometry.area_and_centroid(self.coefficients)[1]

    @property
    def boxes(self) -> tuple[Floats, Floats]:
        """Lowest and highest corners of the exact bounding boxes, (B, 2) each."""
        return geometry.bounding_box(self.coefficients)


@dataclass(frozen=True, eq=False)
class Outline:
    """One closed curve in box units: `coefficients` (P, 4, 2), `order` 1 or 3."""

    coefficients: Floats
    order: int

    @property
    def points(self) -> Floats:
        """1000 points along the curve (1000, 2), including all knots; the first is not repeated."""
        points: Floats = _sample_points(self.coefficients[None])[0]
        return points

    @property
    def area(self) -> float:
        """Exact enclosed area."""
        return float(geometry.area_and_centroid(self.coefficients[None])[0][0])

    @property
    def centroid(self) -> Floats:
        """Exact centroid of the enclosed area (2,)."""
        center: Floats = geometry.area_and_centroid(self.coefficients[None])[1][0]
        return center

    @property
    def box(self) -> tuple[Floats, Floats]:
        """Lowest and highest corner of the exact bounding box, (2,) each."""
        low, high = geometry.bounding_box(self.coefficients[None])
        return low[0], high[0]


def _sample_points(coefficients: Floats) -> Floats:
    """Return 1000 points of curves with equally many pieces, spread evenly over pieces and parameters."""
    count = coefficients.shape[1]
    points = []
    for index in range(count):
        size = NUM_POINTS // count + (index < NUM_POINTS % count)
        piece = coefficients[:, index : index + 1]
        points.append(geometry.evaluate(piece, np.arange(size) / size)[:, 0])
    return np.concatenate(points, axis=1)


def concatenate(batches: Sequence[Outlines]) -> Outlines:
    """Concatenate one or more batches of the same style."""
    return Outlines(
        np.concatenate([batch.coefficients for batch in batches]),
        np.concatenate([batch.pieces for batch in batches]),
        np.concatenate([batch.orders for batch in batches]),
    )
