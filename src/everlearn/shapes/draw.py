"""Draw shapes: from a seed and ids to outlines in canonical form."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everlearn import curves
from everlearn.crossing import crosses_itself
from everlearn.likeness import distances_to, masks
from everlearn.philox import SEED_LIMIT, Floats, Purpose, check_seed, normal, sincos_turns, uniform
from everlearn.shapes.curve import Ints, Outline, Outlines, join
from everlearn.shapes.style import PAPER_STYLE, ShapeStyle

_MOST_TRIES = 256
_CHUNK = 8192


def outline(seed: int, shape_id: int, style: ShapeStyle = PAPER_STYLE) -> Outline:
    """Draw one shape."""
    return outlines(seed, [shape_id], style)[0]


def outlines(seed: int, shape_ids: ArrayLike, style: ShapeStyle = PAPER_STYLE) -> Outlines:
    """Draw many shapes at once; row i is outline(seed, shape_ids[i])."""
    seed, ids = check_seed(seed), _check_ids(shape_ids)
    if not len(ids):
        empty = np.zeros(0, np.int64)
        return Outlines(np.zeros((0, style.vertices[1], 4, 2)), empty, empty)
    if style.min_distance > 0 or len(ids) < style.block:
        return _from_blocks(seed, ids, style)
    zeros = np.zeros(len(ids), np.int64)
    parts = [
        _draw_simple(seed, ids[i : i + _CHUNK], zeros[i : i + _CHUNK], style)[0]
        for i in range(0, len(ids), _CHUNK)
    ]
    return join(parts)


def _check_ids(shape_ids: ArrayLike) -> NDArray[np.uint64]:
    ids = np.atleast_1d(np.asarray(shape_ids))
    if ids.size == 0:
        return np.zeros(0, np.uint64)
    if ids.dtype.kind == "O" and all(isinstance(number, int) for number in ids.flat):
        raise ValueError(f"shape ids must lie in 0 .. {SEED_LIMIT - 1}, found {ids.flat[0]}")
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
    whole = join([_block(seed, int(number), style) for number in numbers])
    return whole.take(place * style.block + (ids % size).astype(np.int64))


@lru_cache(maxsize=64)
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
    return join(chosen)


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
                good[rows] = ~crosses_itself(curve)
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
