"""Sample random shapes: outlines in canonical form from a seed and shape ids."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everlearn.core.random import (
    SEED_LIMIT,
    Floats,
    Purpose,
    box_muller,
    check_seed,
    sincos_turns,
    uniform,
)
from everlearn.shapes import geometry
from everlearn.shapes.closed_curve import Ints, Outline, Outlines, concatenate
from everlearn.shapes.overlap import iou_distances, packed_masks
from everlearn.shapes.self_intersection import self_intersects
from everlearn.shapes.style import PAPER_STYLE, ShapeStyle

_MAX_ATTEMPTS = 256
_CHUNK = 8192


def outline(seed: int, shape_id: int, style: ShapeStyle = PAPER_STYLE) -> Outline:
    """Return the outline of one shape."""
    return outlines(seed, [shape_id], style)[0]


def outlines(seed: int, shape_ids: ArrayLike, style: ShapeStyle = PAPER_STYLE) -> Outlines:
    """Return the outlines of many shapes at once; row i is outline(seed, shape_ids[i])."""
    seed = check_seed(seed)
    ids = _check_ids(shape_ids)
    if not len(ids):
        empty = np.zeros(0, np.int64)
        return Outlines(np.zeros((0, style.vertices[1], 4, 2)), empty, empty)
    if style.min_distance > 0 or len(ids) < style.block:
        return _from_blocks(seed, ids, style)
    attempts = np.zeros(len(ids), np.int64)
    return concatenate(
        [
            _sample_simple(seed, ids[i : i + _CHUNK], attempts[i : i + _CHUNK], style)[0]
            for i in range(0, len(ids), _CHUNK)
        ]
    )


def _check_ids(shape_ids: ArrayLike) -> NDArray[np.uint64]:
    ids = np.atleast_1d(np.asarray(shape_ids))
    if ids.size == 0:
        return np.zeros(0, np.uint64)
    if ids.dtype.kind == "O" and all(isinstance(number, int) for number in ids.flat):
        raise ValueError(f"shape ids must lie in 0 .. {SEED_LIMIT - 1}, found {ids.flat[0]}")
    if ids.dtype.kind not in "iu" or ids.ndim != 1:
        raise TypeError(
            f"shape ids must be a 1-D array of whole numbers, found {ids.dtype} {ids.shape}"
        )
    if ids.dtype.kind == "i" and ids.min() < 0:
        raise ValueError(f"shape ids must lie in 0 .. {SEED_LIMIT - 1}, found {ids.min()}")
    return ids.astype(np.uint64)


def _from_blocks(seed: int, ids: NDArray[np.uint64], style: ShapeStyle) -> Outlines:
    """Sample the blocks that contain the ids, and select the ids."""
    size = np.uint64(style.block)
    blocks, index = np.unique(ids // size, return_inverse=True)
    shapes = concatenate([_sample_block(seed, int(block), style) for block in blocks])
    return shapes.take(index * style.block + (ids % size).astype(np.int64))


@lru_cache(maxsize=64)
def _sample_block(seed: int, block: int, style: ShapeStyle) -> Outlines:
    """Sample all shapes of a block; a shape too similar to an earlier one of the block is redrawn."""
    ids = np.uint64(block) * np.uint64(style.block) + np.arange(style.block, dtype=np.uint64)
    batch, attempts = _sample_simple(seed, ids, np.zeros(style.block, np.int64), style)
    if style.min_distance == 0:
        return batch
    masks = packed_masks(batch.coefficients)
    shapes = [batch.take([row]) for row in range(style.block)]
    for row in range(1, style.block):
        while iou_distances(masks[row], masks[:row]).min() < style.min_distance:
            this = slice(row, row + 1)
            shapes[row], attempts[this] = _sample_simple(seed, ids[this], attempts[this] + 1, style)
            masks[row] = packed_masks(shapes[row].coefficients)[0]
    return concatenate(shapes)


def _sample_simple(
    seed: int, ids: NDArray[np.uint64], attempts: Ints, style: ShapeStyle
) -> tuple[Outlines, Ints]:
    """Sample simple curves, starting at the given attempt of each; also return the accepted attempts.

    A simple curve does not intersect itself; curves that do are redrawn.
    """
    _check_attempts(ids, attempts, style)
    batch, simple = _sample(seed, ids, attempts, style)
    attempts = attempts.copy()
    rejected = np.flatnonzero(~simple)
    while len(rejected):
        attempts[rejected] += 1
        _check_attempts(ids[rejected], attempts[rejected], style)
        redrawn, simple = _sample(seed, ids[rejected], attempts[rejected], style)
        batch.coefficients[rejected] = redrawn.coefficients
        batch.pieces[rejected] = redrawn.pieces
        batch.orders[rejected] = redrawn.orders
        rejected = rejected[~simple]
    return batch, attempts


def _check_attempts(ids: NDArray[np.uint64], attempts: Ints, style: ShapeStyle) -> None:
    if attempts.max() >= _MAX_ATTEMPTS:
        raise ValueError(
            f"shape {ids[attempts.argmax()]} has no acceptable outline in {_MAX_ATTEMPTS} attempts; lower "
            f"min_distance (now {style.min_distance}) or block ({style.block}), or raise the noise"
        )


def _sample(
    seed: int, ids: NDArray[np.uint64], attempts: Ints, style: ShapeStyle
) -> tuple[Outlines, NDArray[np.bool_]]:
    """Sample one attempt of every shape; also return which curves are simple."""
    low, high = style.vertices
    u = uniform(seed, Purpose.SHAPE, ids, attempts, count=2 + 2 * high)
    pieces = low + (u[:, 0] * (high - low + 1)).astype(np.int64)
    orders = np.array(style.orders)[(u[:, 1] * len(style.orders)).astype(np.int64)]
    out = np.zeros((len(ids), high, 4, 2))
    simple = np.ones(len(ids), bool)
    # Curves with the same number of pieces and the same order are computed together.
    for count in range(low, high + 1):
        for order in sorted(set(style.orders)):
            rows = np.flatnonzero((pieces == count) & (orders == order))
            if not len(rows):
                continue
            vertices = _scatter_vertices(u[rows, 2 : 2 + 2 * count], style)
            if order == 1:  # vertices in angular order make a simple polygon
                curve = geometry.polygon(vertices)
            else:
                curve = geometry.periodic_spline(vertices)
                simple[rows] = ~self_intersects(curve)
            curve = _to_canonical(curve, vertices, style)
            out[rows, :count] = curve
            out[rows, count:, 0] = curve[:, :1, 0]
    return Outlines(out, pieces, orders), simple


def _scatter_vertices(u: Floats, style: ShapeStyle) -> Floats:
    """Return vertices (B, n, 2) around the circle, each inside its own sector, from uniforms (B, 2 n)."""
    count = u.shape[1] // 2
    radial, angular = box_muller(u[:, 0::2], u[:, 1::2])
    low, high = style.radius_clip
    radius = np.minimum(np.maximum(1.0 + style.radius_std * radial, low), high)
    half_sector = math.pi / count - 1e-6
    offset = style.angle_std * half_sector * angular
    offset = np.minimum(np.maximum(offset, -half_sector), half_sector)
    sine, cosine = sincos_turns(np.arange(count) / count + offset / (2 * math.pi))
    return np.stack((radius * cosine, radius * sine), axis=2)


def _to_canonical(curve: Floats, vertices: Floats, style: ShapeStyle) -> Floats:
    """Rotate, scale and translate curves into canonical form."""
    if style.align:
        curve = _rotate_upright(curve, vertices)
    low, high = geometry.bounding_box(curve)
    size = high - low
    if not style.stretch:
        size = np.broadcast_to(size.max(axis=1, keepdims=True), size.shape)
    curve = curve / size[:, None, None, :]
    origin = (low + high) / (2.0 * size)
    if style.center == "mass":
        origin = geometry.area_and_centroid(curve)[1]
    curve[:, :, 0] -= origin[:, None]
    return curve


def _rotate_upright(curve: Floats, vertices: Floats) -> Floats:
    """Rotate curves so that the long axis points to -y."""
    step = np.roll(vertices, -1, axis=1) - vertices
    lengths = np.sqrt(step[..., 0] * step[..., 0] + step[..., 1] * step[..., 1])
    axis = geometry.long_axis(curve, lengths)[:, None, None]
    x = curve[..., 0]
    y = curve[..., 1]
    return np.stack(
        (axis[..., 0] * y - axis[..., 1] * x, -axis[..., 0] * x - axis[..., 1] * y), axis=-1
    )
