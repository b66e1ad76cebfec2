"""Outlines as pen strokes: short straight edges, each with the colours on its two sides.

An image is its background plus, for every edge, a change of level on the side it bounds. The mark is
the part of a shape with x > 0 in box units, so the curve is split where it crosses x = 0 and edges
along that line are added between the crossings.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everlearn.philox import Floats
from everlearn.shapes import Outlines

BOX = 0.45  # side of the canonical unit box, as a share of the canvas
PEN_UP, SHAPE_EDGE, MARK_EDGE, CUT_EDGE = 0, 1, 2, 3
TOLERANCE = 0.005  # pixels between a curve and its chord
Ints = NDArray[np.int64]


class Trace(NamedTuple):
    """Strokes of many shapes.

    Attributes:
        points: (V, 2) float32 vertices in box units.
        kinds: (V,) what the edge from vertex v to vertex v + 1 bounds; PEN_UP where there is none.
        starts: (S + 1,) where each shape's vertices begin.
    """

    points: NDArray[np.float32]
    kinds: NDArray[np.int32]
    starts: NDArray[np.int32]


def trace(outlines: Outlines, pixels: float, longest: float | None = None) -> Trace:
    """Flatten outlines for drawing at `pixels` pixels a box unit.

    Args:
        longest: cut edges to at most this many pixels; None leaves straight lines whole.
    """
    shape, points = _flatten(outlines, pixels, longest)
    shape, points, kinds = _split_at_mark(shape, points)
    cut_shape, cut_points, cut_kinds = _cuts(shape, points, kinds, pixels, longest)
    shape, points, kinds = _close(shape, points, kinds)
    owner = np.concatenate((shape, cut_shape))
    order = np.argsort(owner, kind="stable")
    starts = np.searchsorted(owner[order], np.arange(len(outlines) + 1))
    return Trace(
        np.concatenate((points, cut_points))[order].astype(np.float32),
        np.concatenate((kinds, cut_kinds))[order].astype(np.int32),
        starts.astype(np.int32),
    )


def detail(maps: Floats) -> Ints:
    """How finely each image's outline is cut: for scales up to this power of two, 1 at least.

    It follows from the image alone, so that an image is the same in any batch.
    """
    m = np.asarray(maps)
    square = np.maximum(m[:, 0, 0] ** 2 + m[:, 1, 0] ** 2, m[:, 0, 1] ** 2 + m[:, 1, 1] ** 2)
    powers = np.ones(len(m), np.int64)
    large = np.flatnonzero(square > 1.0 + 1e-9)
    powers[large] = 2 ** np.ceil(np.log2(square[large]) / 2 - 1e-9).astype(np.int64)
    return powers


def _flatten(outlines: Outlines, pixels: float, longest: float | None) -> tuple[Ints, Floats]:
    """Vertices along every curve, with the shape each belongs to."""
    slots = np.arange(outlines.coefficients.shape[1])
    shape, piece = np.nonzero(slots < outlines.pieces[:, None])
    c = outlines.coefficients[shape, piece]
    bend = np.maximum(_length(2.0 * c[:, 2]), _length(2.0 * c[:, 2] + 6.0 * c[:, 3]))
    steps = np.sqrt(pixels * bend / (8.0 * TOLERANCE))
    if longest is not None:
        speeds = (c[:, 1], c[:, 1] + c[:, 2], c[:, 1] + 2.0 * c[:, 2] + 3.0 * c[:, 3])
        fastest = np.max([_length(speed) for speed in speeds], axis=0)
        steps = np.maximum(steps, pixels * fastest / longest)
    count = np.maximum(np.ceil(steps), 1.0).astype(np.int64)
    which, local = _spread(count)
    t = (local / count[which])[:, None]
    c = c[which]
    return shape[which], ((c[:, 3] * t + c[:, 2]) * t + c[:, 1]) * t + c[:, 0]


def _split_at_mark(shape: Ints, points: Floats) -> tuple[Ints, Floats, Ints]:
    """Insert a vertex where an edge crosses x = 0; name the side of every edge."""
    after = points[_next_in_shape(shape)]
    right, right_after = points[:, 0] > 0.0, after[:, 0] > 0.0
    crossing = right != right_after
    which, second = _spread(1 + crossing.astype(np.int64))
    out = points[which]
    side = np.where(right, MARK_EDGE, SHAPE_EDGE)[which]
    row = which[second == 1]
    x0, x1 = points[row, 0], after[row, 0]
    share = x0 / (x0 - x1)
    out[second == 1] = np.stack(
        (np.zeros(len(row)), points[row, 1] + share * (after[row, 1] - points[row, 1])), axis=1
    )
    side[second == 1] = np.where(right_after[row], MARK_EDGE, SHAPE_EDGE)
    return shape[which], out, side


def _cuts(
    shape: Ints, points: Floats, kinds: Ints, pixels: float, longest: float | None
) -> tuple[Ints, Floats, Ints]:
    """Edges along x = 0 that close the marked part: from where the curve leaves it to a return.

    Which leaving is joined to which return does not matter: overlapping edges cancel.
    """
    before = np.empty_like(kinds)
    before[_next_in_shape(shape)] = kinds
    leave = np.flatnonzero((before == MARK_EDGE) & (kinds == SHAPE_EDGE))
    enter = np.flatnonzero((before == SHAPE_EDGE) & (kinds == MARK_EDGE))
    low, high = points[leave, 1], points[enter, 1]
    count = np.ones(len(leave), np.int64)
    if longest is not None:
        count = np.maximum(np.ceil(np.abs(high - low) * pixels / longest), 1.0).astype(np.int64)
    which, local = _spread(count + 1)
    share = local / count[which]
    y = np.where(local == count[which], high[which], low[which] + share * (high - low)[which])
    kind = np.where(local == count[which], PEN_UP, CUT_EDGE)
    return shape[leave][which], np.stack((np.zeros(len(y)), y), axis=1), kind


def _close(shape: Ints, points: Floats, kinds: Ints) -> tuple[Ints, Floats, Ints]:
    """Repeat each shape's first vertex behind its last, with the pen up after it."""
    first = np.flatnonzero(np.diff(shape, prepend=-1))
    order = np.argsort(np.concatenate((shape, shape[first])), kind="stable")
    return (
        np.concatenate((shape, shape[first]))[order],
        np.concatenate((points, points[first]))[order],
        np.concatenate((kinds, np.full(len(first), PEN_UP)))[order],
    )


def _next_in_shape(shape: Ints) -> Ints:
    """Row of the vertex after each, the last of a shape going back to its first."""
    first = np.flatnonzero(np.diff(shape, prepend=-1))
    following = np.arange(1, len(shape) + 1)
    last = np.append(first[1:], len(shape)) - 1
    following[last] = first
    return following


def _spread(count: Ints) -> tuple[Ints, Ints]:
    """Repeat row i count[i] times: the rows, and 0 .. count[i] - 1 beside them."""
    which = np.repeat(np.arange(len(count)), count)
    starts = np.cumsum(count) - count
    return which, np.arange(len(which)) - starts[which]


def _length(vectors: Floats) -> Floats:
    return np.sqrt(vectors[:, 0] * vectors[:, 0] + vectors[:, 1] * vectors[:, 1])
