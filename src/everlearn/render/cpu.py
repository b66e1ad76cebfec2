"""Render on the CPU with numba: exact area coverage in fixed point, on all cores.

Vertices are snapped to 1/1024 pixel. Every edge adds its signed area to the cells it crosses; a running
sum along each row then gives the covered area of every pixel (the accumulation buffer of font
rasterisers). Sums are integers, so their order does not matter and every machine renders the same image.

Fixed point: coordinates have _BITS fractional bits. Coverage counts twice the area in subpixels, so that
trapezoids need no division: a covered pixel is 2 * 1024 * 1024 = 2**_AREA_BITS. Times a difference of
levels of at most 255 it fits in int32.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everlearn.core.random import Floats
from everlearn.render.canvas import Canvas
from everlearn.render.color_tables import edge_levels, pixel_values
from everlearn.render.edges import BOX_FRACTION, EdgeList, build_edges, detail_level
from everlearn.render.jit import jit
from everlearn.render.thread_pool import parallel_for
from everlearn.shapes import Outlines

_BITS = 10
_ONE = 1 << _BITS
_AREA_BITS = 2 * _BITS + 1
_HALF = 1 << (_AREA_BITS - 1)


@dataclass(frozen=True, eq=False)
class CpuRenderer:
    """Outlines and a canvas, prepared for rendering; edge lists are cached by level of detail."""

    outlines: Outlines
    canvas: Canvas
    _edges: dict[int, EdgeList] = field(default_factory=dict, repr=False)

    def draw(
        self,
        which: NDArray[np.int64],
        maps: Floats,
        color: NDArray[np.int64],
        threads: int | None = None,
    ) -> NDArray[Any]:
        """Render outline which[b] under the affine map maps[b] (2, 3); return (B, C, H, W)."""
        size = self.canvas.size
        table = edge_levels(self.canvas)
        values = pixel_values(self.canvas.dtype)
        details = detail_level(maps)
        out = np.empty((len(which), *self.canvas.shape), values.dtype)
        images = (which.astype(np.int64), to_pixels(maps, size), color.astype(np.int64))
        for detail in np.unique(details).tolist():
            rows = np.flatnonzero(details == detail)
            edges = self._edge_list(detail)
            work = partial(_draw_rows, *edges, rows, *images, table, values, out)
            parallel_for(work, len(rows), len(rows) * size**2 * self.canvas.channels, threads)
        return out

    def _edge_list(self, detail: int) -> EdgeList:
        if detail not in self._edges:
            pixels = BOX_FRACTION * self.canvas.size * detail
            self._edges[detail] = build_edges(self.outlines, pixels)
        return self._edges[detail]


def to_pixels(maps: Floats, size: int) -> NDArray[np.float32]:
    """Convert maps between [-1, 1] squares to maps from box units to pixels, (B, 6)."""
    out = np.asarray(maps, float) * (size / 2)
    out[:, :, :2] *= 2 * BOX_FRACTION
    out[:, :, 2] += size / 2
    return out.reshape(-1, 6).astype(np.float32)


@jit
def _draw_rows(points, edge_types, starts, rows, which, maps, color, table, values, out, low, high):  # type: ignore[no-untyped-def]
    """Render images rows[low:high]; threads share everything but these images of `out`."""
    size = out.shape[3]
    channels = out.shape[1]
    max_vertices = 0
    for shape in range(len(starts) - 1):
        max_vertices = max(max_vertices, starts[shape + 1] - starts[shape])
    # Scratch memory of this thread, used for all its images. The accumulator has two more columns than
    # the image, so that an edge in the last pixel can write to the next cell without a check.
    x = np.empty(max_vertices, np.int32)
    y = np.empty(max_vertices, np.int32)
    area = np.zeros((size, size + 2), np.int32)
    for b in rows[low:high]:
        start = starts[which[b]]
        count = starts[which[b] + 1] - start
        _snap(points[start : start + count], maps[b], x, y)
        for c in range(channels):
            levels = table[color[b], c]
            # Grey shapes on RGB canvases have equal channels: copy instead of rendering again.
            if c > 0 and _same(levels, table[color[b], c - 1]):
                out[b, c] = out[b, c - 1]
                continue
            _accumulate(x, y, edge_types[start : start + count], levels, area)
            _sum_rows(x[:count], y[:count], levels[0], area, values, out[b, c])
    return 0


@partial(jit, inline="always")
def _same(a, b):  # type: ignore[no-untyped-def]
    return a[0] == b[0] and a[1] == b[1] and a[2] == b[2] and a[3] == b[3]


@jit
def _snap(points, m, x, y):  # type: ignore[no-untyped-def]
    """Map vertices to pixels and round them to the 1/1024 grid, x and y.

    All arithmetic is float32, as on the GPU. A vertex shared by two edges is rounded once, so outlines
    stay closed and no area leaks out.
    """
    one = np.float32(_ONE)
    half = np.float32(0.5)
    xx, xy, x0 = m[0] * one, m[1] * one, m[2] * one
    yx, yy, y0 = m[3] * one, m[4] * one, m[5] * one
    for i in range(len(points)):
        px, py = points[i, 0], points[i, 1]
        x[i] = np.int32(np.floor(xx * px + xy * py + x0 + half))
        y[i] = np.int32(np.floor(yx * px + yy * py + y0 + half))


@jit
def _accumulate(x, y, edge_types, levels, area):  # type: ignore[no-untyped-def]
    """Add the signed area of every edge to the accumulator, row by row."""
    size = area.shape[0]
    for i in range(len(edge_types) - 1):
        edge_type = edge_types[i]
        if edge_type == 0:
            continue
        weight = -levels[edge_type]
        x0, y0 = x[i], y[i]
        x1, y1 = x[i + 1], y[i + 1]
        # Horizontal edges bound no area in any row, and equal levels on both sides need no edge.
        if y0 == y1 or weight == 0:
            continue
        # Walk every edge downwards; the sign of its weight keeps the direction.
        if y0 > y1:
            x0, y0, x1, y1 = x1, y1, x0, y0
            weight = -weight
        # Shifts floor negative numbers too. y1 - 1: an edge that ends on a border stays in the row above.
        row = y0 >> _BITS
        last = (y1 - 1) >> _BITS
        if row == last:
            if 0 <= row < size:
                _add_row(area[row], x0, x1, y1 - y0, weight)
            continue
        dx_per_dy = (x1 - x0) / (y1 - y0)
        xa, ya = x0, y0
        while row <= last:
            xb, yb = x1, y1
            if row < last:
                # From the start of the edge, not from xa: rounding errors must not add up.
                yb = (row + 1) << _BITS
                xb = x0 + np.int32(np.rint((yb - y0) * dx_per_dy))
            if 0 <= row < size:
                _add_row(area[row], xa, xb, yb - ya, weight)
            xa, ya = xb, yb
            row += 1


@jit
def _add_row(cells, xa, xb, dy, weight):  # type: ignore[no-untyped-def]
    """Add an edge that stays in one row of cells, falling by dy between xa and xb."""
    if xa > xb:
        xa, xb = xb, xa
    cell = xa >> _BITS
    # xb - 1 keeps an edge that ends on a border in the cell before it; max, for vertical edges.
    last = max(xa, xb - 1) >> _BITS
    if cell == last:
        _add_cell(cells, cell, xa + xb, dy, weight)
        return
    dy_per_dx = dy / (xb - xa)
    x0, y0 = xa, 0
    while cell <= last:
        x1, y1 = xb, dy
        if cell < last:
            x1 = (cell + 1) << _BITS
            y1 = np.int64(np.rint((x1 - xa) * dy_per_dx))
        _add_cell(cells, cell, x0 + x1, y1 - y0, weight)
        x0, y0 = x1, y1
        cell += 1


@partial(jit, inline="always")
def _add_cell(cells, cell, twice_x, dy, weight):  # type: ignore[no-untyped-def]
    """Add the part of an edge inside one cell: height dy, mean x twice_x / 2.

    The cell gains the area between the edge and its right side, and the next cell the rest, so that the
    running sum gives every later cell the full height. Left of the image, an edge counts as if it ran
    along the left border; right of it, not at all.
    """
    if cell < 0:
        cells[0] += weight * dy * (2 * _ONE)
    elif cell < len(cells) - 2:
        right = twice_x - 2 * (cell << _BITS)
        cells[cell] += weight * dy * (2 * _ONE - right)
        cells[cell + 1] += weight * dy * right


@jit
def _sum_rows(x, y, background, area, values, plane):  # type: ignore[no-untyped-def]
    """Turn the accumulator into pixels of one channel, and clear it for the next one.

    Only the bounding box of the vertices is summed: outside it every pixel is background, since the
    weights of a closed outline cancel to the right of it.
    """
    size = plane.shape[0]
    empty = values[background]
    top = max(y.min() >> _BITS, 0)
    bottom = min((y.max() >> _BITS) + 1, size)
    left = max(x.min() >> _BITS, 0)
    right = min((x.max() >> _BITS) + 1, size)
    plane[:top] = empty
    plane[max(bottom, 0) :] = empty
    for row in range(top, bottom):
        plane[row, :left] = empty
        plane[row, max(right, 0) :] = empty
        cells = area[row]
        # Adding half makes the shift below round to the nearest level.
        total = np.int32((background << _AREA_BITS) + _HALF)
        for column in range(left, right):
            total += cells[column]
            cells[column] = 0
            plane[row, column] = values[min(max(total >> _AREA_BITS, 0), 255)]
        cells[max(right, 0)] = 0
