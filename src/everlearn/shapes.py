"""Shapes without end: outline(seed, shape_id) is a closed curve, a pure function of its arguments.

Vertices are scattered around a circle, joined by straight lines or a periodic cubic spline, turned
so that the long axis stands upright, fitted into a unit box and centred on the centroid of the
enclosed area. All geometry is exact on the curve: a shape does not depend on any canvas.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everlearn import curves
from everlearn.likeness import distances_to, masks
from everlearn.philox import SEED_LIMIT, Floats, Purpose, check_seed, normal, sincos_turns, uniform

Ints = NDArray[np.int64]
POINTS = 1000
_MOST_TRIES = 256
_CHUNK = 8192


@dataclass(frozen=True)
class ShapeStyle:
    """How shapes are drawn; the defaults are those of the Infinite dSprites paper and its code.

    Args:
        vertices: fewest and most vertices, both included.
        radius_std: spread of the vertices' distance from the centre, around 1.
        radius_clip: bounds of that distance.
        angle_std: spread of the vertices' angle, as a share of half the sector of each.
        orders: spline orders to choose from: 1 (straight lines), 3 (cubic).
        align: turn the long axis upright.
        stretch: fit the unit box in both directions (True) or keep the proportions (False).
        center: put the origin at the centroid of the area ("mass") or the middle of the box ("box").
        min_distance: redraw a shape nearer than this (1 - intersection over union, canonical form)
            to an earlier shape of its own block of ids; 0 never redraws.
        block: how many consecutive ids make a block.
    """

    vertices: tuple[int, int] = (5, 8)
    radius_std: float = 0.4
    radius_clip: tuple[float, float] = (0.1, 1.9)
    angle_std: float = 0.5
    orders: tuple[int, ...] = (1, 3)
    align: bool = True
    stretch: bool = True
    center: str = "mass"
    min_distance: float = 0.0
    block: int = 64

    def __post_init__(self) -> None:
        """Check every field at the border."""
        for name in ("vertices", "radius_clip", "orders"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        low, high = self._pair("vertices", int)
        if not 3 <= low <= high <= 64:
            raise ValueError(f"vertices must satisfy 3 <= low <= high <= 64, found {self.vertices}")
        near, far = self._pair("radius_clip", float)
        if not 0 < near <= 1 <= far < math.inf:
            raise ValueError(
                f"radius_clip must satisfy 0 < low <= 1 <= high, found {self.radius_clip}"
            )
        for name, most in (
            ("radius_std", math.inf),
            ("angle_std", math.inf),
            ("min_distance", 0.5),
        ):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise TypeError(f"{name} must be a number, found {value!r}")
            if not (0 <= value <= most and math.isfinite(value)):
                raise ValueError(f"{name} must lie in 0 .. {most}, found {value}")
        if not self.orders or not set(self.orders) <= {1, 3}:
            raise ValueError(f"orders must be chosen from 1 and 3, found {self.orders}")
        for name in ("align", "stretch"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be true or false, found {getattr(self, name)!r}")
        if self.center not in ("mass", "box"):
            raise ValueError(f"center must be 'mass' or 'box', found {self.center!r}")
        if (
            isinstance(self.block, bool)
            or not isinstance(self.block, int)
            or not 2 <= self.block <= 4096
        ):
            raise ValueError(f"block must be a whole number in 2 .. 4096, found {self.block!r}")

    def _pair(self, name: str, kind: type) -> tuple[float, float]:
        value = getattr(self, name)
        numbers = int if kind is int else (int, float)
        if len(value) != 2 or any(isinstance(v, bool) or not isinstance(v, numbers) for v in value):
            raise TypeError(f"{name} must be two numbers (low, high), found {value!r}")
        return value[0], value[1]


PAPER_STYLE = ShapeStyle()


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


def outline(seed: int, shape_id: int, style: ShapeStyle = PAPER_STYLE) -> Outline:
    """Draw one shape."""
    return outlines(seed, [shape_id], style)[0]


def outlines(seed: int, shape_ids: ArrayLike, style: ShapeStyle = PAPER_STYLE) -> Outlines:
    """Draw many shapes at once; row i is outline(seed, shape_ids[i])."""
    seed, ids = check_seed(seed), _check_ids(shape_ids)
    if style.min_distance > 0 or len(ids) < style.block:
        return _from_blocks(seed, ids, style)
    zeros = np.zeros(len(ids), np.int64)
    parts = [
        _draw_simple(seed, ids[i : i + _CHUNK], zeros[i : i + _CHUNK], style)[0]
        for i in range(0, len(ids), _CHUNK)
    ]
    return join(parts, style)


def join(parts: Sequence[Outlines], style: ShapeStyle = PAPER_STYLE) -> Outlines:
    """Put batches of one style behind one another."""
    if not parts:
        empty = np.zeros(0, np.int64)
        return Outlines(np.zeros((0, style.vertices[1], 4, 2)), empty, empty)
    return Outlines(
        np.concatenate([part.coefficients for part in parts]),
        np.concatenate([part.pieces for part in parts]),
        np.concatenate([part.orders for part in parts]),
    )


def _check_ids(shape_ids: ArrayLike) -> NDArray[np.uint64]:
    ids = np.atleast_1d(np.asarray(shape_ids))
    if ids.size == 0:
        return np.zeros(0, np.uint64)
    if ids.dtype.kind not in "iu" or ids.ndim != 1:
        raise TypeError(
            f"shape ids must be whole numbers in one row, found {ids.dtype} {ids.shape}"
        )
    if ids.dtype.kind == "i" and ids.min() < 0:
        raise ValueError(f"shape ids must lie in 0 .. {SEED_LIMIT - 1}, found {ids.min()}")
    return ids.astype(np.uint64)


def _from_blocks(seed: int, ids: NDArray[np.uint64], style: ShapeStyle) -> Outlines:
    """Draw the blocks that hold some shapes, and pick these."""
    size = np.uint64(style.block)
    numbers, place = np.unique(ids // size, return_inverse=True)
    whole = join([_block(seed, int(number), style) for number in numbers], style)
    return whole.take(place * style.block + (ids % size).astype(np.int64))


@lru_cache(maxsize=128)
def _block(seed: int, block: int, style: ShapeStyle) -> Outlines:
    """Draw a whole block; a shape too like an earlier one of the block is drawn again."""
    ids = np.uint64(block) * np.uint64(style.block) + np.arange(style.block, dtype=np.uint64)
    batch, tries = _draw_simple(seed, ids, np.zeros(style.block, np.int64), style)
    if style.min_distance == 0:
        return batch
    seen = masks(batch.coefficients)
    chosen = [batch.take([row]) for row in range(style.block)]
    for row in range(1, style.block):
        while distances_to(seen[row], seen[:row]).min() < style.min_distance:
            one = slice(row, row + 1)
            chosen[row], tries[one] = _draw_simple(seed, ids[one], tries[one] + 1, style)
            seen[row] = masks(chosen[row].coefficients)[0]
    return join(chosen, style)


def _draw_simple(
    seed: int, ids: NDArray[np.uint64], tries: Ints, style: ShapeStyle
) -> tuple[Outlines, Ints]:
    """Draw shapes that do not cross themselves, from the given try of each on; also the try kept."""
    _check_tries(ids, tries, style)
    batch, good = _draw(seed, ids, tries, style)
    tries = tries.copy()
    bad = np.flatnonzero(~good)
    while len(bad):
        tries[bad] += 1
        _check_tries(ids[bad], tries[bad], style)
        again, good = _draw(seed, ids[bad], tries[bad], style)
        for mine, new in zip(
            (batch.coefficients, batch.pieces, batch.orders),
            (again.coefficients, again.pieces, again.orders),
            strict=True,
        ):
            mine[bad] = new
        bad = bad[~good]
    return batch, tries


def _check_tries(ids: NDArray[np.uint64], tries: Ints, style: ShapeStyle) -> None:
    if tries.max() >= _MOST_TRIES:
        raise ValueError(
            f"shape {ids[tries.argmax()]} found no acceptable outline in {_MOST_TRIES} tries; lower "
            f"min_distance (now {style.min_distance}) or block ({style.block}), or raise the noise"
        )


def _draw(
    seed: int, ids: NDArray[np.uint64], tries: Ints, style: ShapeStyle
) -> tuple[Outlines, NDArray[np.bool_]]:
    """Draw one try of every shape; also whether it is free of self-crossings."""
    low, high = style.vertices
    numbers = uniform(seed, Purpose.SHAPE, ids, tries, count=2 + 2 * high)
    pieces = low + (numbers[:, 0] * (high - low + 1)).astype(np.int64)
    orders = np.array(style.orders)[(numbers[:, 1] * len(style.orders)).astype(np.int64)]
    out = np.zeros((len(ids), high, 4, 2))
    good = np.ones(len(ids), bool)
    for count in range(low, high + 1):
        for order in sorted(set(style.orders)):
            rows = np.flatnonzero((pieces == count) & (orders == order))
            if not len(rows):
                continue
            vertices = _scatter(numbers[rows, 2 : 2 + 2 * count], style)
            curve = curves.polygon(vertices) if order == 1 else curves.periodic_spline(vertices)
            if order == 3:
                good[rows] = ~curves.crosses_itself(curve)
            curve = _canonical(curve, vertices, style)
            out[rows, :count] = curve
            out[rows, count:, 0] = curve[:, :1, 0]
    return Outlines(out, pieces, orders), good


def _scatter(numbers: Floats, style: ShapeStyle) -> Floats:
    """Place vertices (B, n, 2) around the circle, each inside its own sector."""
    count = numbers.shape[1] // 2
    radial, angular = normal(numbers[:, 0::2], numbers[:, 1::2])
    near, far = style.radius_clip
    radius = np.minimum(np.maximum(1.0 + style.radius_std * radial, near), far)
    half = math.pi / count - 1e-6
    offset = np.minimum(np.maximum(style.angle_std * half * angular, -half), half)
    sine, cosine = sincos_turns(np.arange(count) / count + offset / (2 * math.pi))
    return np.stack((radius * cosine, radius * sine), axis=2)


def _canonical(curve: Floats, vertices: Floats, style: ShapeStyle) -> Floats:
    """Turn, scale and shift curves into canonical form."""
    if style.align:
        curve = _upright(curve, vertices)
    low, high = curves.bounding_box(curve)
    size = high - low
    if not style.stretch:
        size = np.broadcast_to(size.max(axis=1, keepdims=True), size.shape)
    curve = curve / size[:, None, None, :]
    origin = (low + high) / (2.0 * size)
    if style.center == "mass":
        origin = curves.area_and_centroid(curve)[1]
    curve[:, :, 0] -= origin[:, None]
    return curve


def _upright(curve: Floats, vertices: Floats) -> Floats:
    """Rotate curves so that the long axis points to -y."""
    step = np.roll(vertices, -1, axis=1) - vertices
    lengths = np.sqrt(step[..., 0] * step[..., 0] + step[..., 1] * step[..., 1])
    axis = curves.long_axis(curve, lengths)[:, None, None]
    x, y = curve[..., 0], curve[..., 1]
    return np.stack(
        (axis[..., 0] * y - axis[..., 1] * x, -axis[..., 0] * x - axis[..., 1] * y), axis=-1
    )
