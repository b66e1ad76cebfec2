"""Outlines as lists of short straight edges, each with the change of level that it bounds.

An image is its background plus a step of level on one side of every edge. The mark is the part of a
shape with x > 0 in box units, so the curve is split where it crosses x = 0, and edges along that line
close the marked part.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everlearn.core.random import Floats
from everlearn.shapes import Outlines

BOX_FRACTION = 0.45  # side of the canonical unit box, as a fraction of the canvas
TOLERANCE = 0.005  # pixels between a curve and its chord
# Edge types, which index the columns of `edge_levels`.
NO_EDGE = 0
SHAPE_EDGE = 1  # between background and shape
MARK_EDGE = 2  # between background and mark
MARK_BOUNDARY_EDGE = 3  # between shape and mark
Ints = NDArray[np.int64]


class EdgeList(NamedTuple):
    """Edges of many shapes, as chains of vertices.

    Attributes:
        points: (V, 2) float32 vertices in box units.
        edge_types: (V,) type of the edge from vertex v to vertex v + 1; NO_EDGE where a chain ends.
        starts: (S + 1,) index of the first vertex of each shape.
    """

    points: NDArray[np.float32]
    edge_types: NDArray[np.int32]
    starts: NDArray[np.int32]


class _Chain(NamedTuple):
    """Vertices with the shape each belongs to, (V,), (V, 2), and the type of the edge after each, (V,)."""

    shape: Ints
    points: Floats
    edge_types: Ints


def build_edges(outlines: Outlines, pixels: float, max_length: float | None = None) -> EdgeList:
    """Flatten outlines to edges for rendering at `pixels` pixels per box unit.

    Args:
        max_length: split edges longer than this many pixels; None leaves straight lines unsplit.
    """
    chain = _split_at_mark(*_flatten(outlines, pixels, max_length))
    boundary = _mark_boundary(chain, pixels, max_length)
    closed = _close(chain)
    shape = np.concatenate((closed.shape, boundary.shape))
    points = np.concatenate((closed.points, boundary.points))
    edge_types = np.concatenate((closed.edge_types, boundary.edge_types))
    order = np.argsort(shape, kind="stable")
    starts = np.searchsorted(shape[order], np.arange(len(outlines) + 1))
    return EdgeList(
        points[order].astype(np.float32),
        edge_types[order].astype(np.int32),
        starts.astype(np.int32),
    )


def detail_level(maps: Floats) -> Ints:
    """Return the level of detail of each image: its scale rounded up to a power of two, at least 1.

    It depends on the image only, so that an image is the same in every batch.
    """
    m = np.asarray(maps)
    squared_scale = np.maximum(m[:, 0, 0] ** 2 + m[:, 1, 0] ** 2, m[:, 0, 1] ** 2 + m[:, 1, 1] ** 2)
    levels = np.ones(len(m), np.int64)
    large = np.flatnonzero(squared_scale > 1.0 + 1e-9)
    levels[large] = 2 ** np.ceil(np.log2(squared_scale[large]) / 2 - 1e-9).astype(np.int64)
    return levels


def _flatten(outlines: Outlines, pixels: float, max_length: float | None) -> tuple[Ints, Floats]:
    """Return the shape (V,) and the position (V, 2) of vertices along every curve."""
    index = np.arange(outlines.coefficients.shape[1])
    shape, piece = np.nonzero(index < outlines.pieces[:, None])
    c = outlines.coefficients[shape, piece]
    # A chord over a parameter step h deviates from the curve by at most h**2 / 8 times the largest
    # second derivative, which is linear in t and so largest at an end.
    bend = np.maximum(_length(2.0 * c[:, 2]), _length(2.0 * c[:, 2] + 6.0 * c[:, 3]))
    steps = np.sqrt(pixels * bend / (8.0 * TOLERANCE))
    if max_length is not None:
        # A quadratic lies in the hull of its Bezier points, which bounds the speed.
        speeds = (c[:, 1], c[:, 1] + c[:, 2], c[:, 1] + 2.0 * c[:, 2] + 3.0 * c[:, 3])
        max_speed = np.max([_length(speed) for speed in speeds], axis=0)
        steps = np.maximum(steps, pixels * max_speed / max_length)
    count = np.maximum(np.ceil(steps), 1.0).astype(np.int64)
    row, step = _repeat(count)
    t = (step / count[row])[:, None]
    c = c[row]
    return shape[row], ((c[:, 3] * t + c[:, 2]) * t + c[:, 1]) * t + c[:, 0]


def _split_at_mark(shape: Ints, points: Floats) -> _Chain:
    """Insert a vertex where an edge crosses x = 0, and give every edge its type."""
    following = points[_next_in_shape(shape)]
    marked = points[:, 0] > 0.0
    following_marked = following[:, 0] > 0.0
    crosses = marked != following_marked
    row, copy = _repeat(1 + crosses.astype(np.int64))
    inserted = copy == 1
    out = points[row]
    edge_types = np.where(marked, MARK_EDGE, SHAPE_EDGE)[row]
    crossing = row[inserted]
    x0 = points[crossing, 0]
    y0 = points[crossing, 1]
    t = x0 / (x0 - following[crossing, 0])
    y = y0 + t * (following[crossing, 1] - y0)
    out[inserted] = np.stack((np.zeros(len(y)), y), axis=1)
    edge_types[inserted] = np.where(following_marked[crossing], MARK_EDGE, SHAPE_EDGE)
    return _Chain(shape[row], out, edge_types)


def _mark_boundary(chain: _Chain, pixels: float, max_length: float | None) -> _Chain:
    """Return edges along x = 0 that close the marked part, from each exit of the curve to an entry.

    Any pairing of exits with entries is correct, because overlapping edges cancel.
    """
    shape, points, edge_types = chain
    previous = np.empty_like(edge_types)
    previous[_next_in_shape(shape)] = edge_types
    exits = np.flatnonzero((previous == MARK_EDGE) & (edge_types == SHAPE_EDGE))
    entries = np.flatnonzero((previous == SHAPE_EDGE) & (edge_types == MARK_EDGE))
    start = points[exits, 1]
    end = points[entries, 1]
    count = np.ones(len(exits), np.int64)
    if max_length is not None:
        count = np.maximum(np.ceil(np.abs(end - start) * pixels / max_length), 1.0).astype(np.int64)
    row, step = _repeat(count + 1)
    last = step == count[row]
    # The last vertex is the entry itself, not a rounded sum, so that it meets the curve.
    y = np.where(last, end[row], start[row] + step / count[row] * (end - start)[row])
    types = np.where(last, NO_EDGE, MARK_BOUNDARY_EDGE)
    return _Chain(shape[exits][row], np.stack((np.zeros(len(y)), y), axis=1), types)


def _close(chain: _Chain) -> _Chain:
    """Append each shape's first vertex to its chain, without an edge after it."""
    shape, points, edge_types = chain
    first = np.flatnonzero(np.diff(shape, prepend=-1))
    order = np.argsort(np.concatenate((shape, shape[first])), kind="stable")
    return _Chain(
        np.concatenate((shape, shape[first]))[order],
        np.concatenate((points, points[first]))[order],
        np.concatenate((edge_types, np.full(len(first), NO_EDGE)))[order],
    )


def _next_in_shape(shape: Ints) -> Ints:
    """Return the index of the next vertex of the same shape; the first vertex follows the last."""
    first = np.flatnonzero(np.diff(shape, prepend=-1))
    following = np.arange(1, len(shape) + 1)
    last = np.append(first[1:], len(shape)) - 1
    following[last] = first
    return following


def _repeat(count: Ints) -> tuple[Ints, Ints]:
    """Repeat row i count[i] times; return the rows, and the numbers 0 .. count[i] - 1 of the copies."""
    row = np.repeat(np.arange(len(count)), count)
    starts = np.cumsum(count) - count
    return row, np.arange(len(row)) - starts[row]


def _length(vectors: Floats) -> Floats:
    return np.sqrt(vectors[:, 0] * vectors[:, 0] + vectors[:, 1] * vectors[:, 1])
