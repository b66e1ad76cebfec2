"""Draw on the CPU with numba: exact area coverage in fixed point, on all cores.

Vertices are snapped to 1/1024 pixel. Every edge adds its signed area to the cells it passes; a running
sum along each row then gives the covered area of every pixel (the accumulation method of font
rasterisers). Sums are integers, so their order does not matter and every machine gets the same image.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everlearn.philox import Floats
from everlearn.render.canvas import Canvas
from everlearn.render.jit import jit
from everlearn.render.levels import level_table, lookup_table
from everlearn.render.threads import in_parts
from everlearn.render.trace import BOX, Trace, detail, trace
from everlearn.shapes import Outlines

_BITS = 10
_ONE = 1 << _BITS
_AREA_BITS = 2 * _BITS + 1
_HALF = 1 << (_AREA_BITS - 1)


@dataclass(frozen=True, eq=False)
class Pen:
    """Outlines and colours, ready to draw; what was traced once is kept."""

    outlines: Outlines
    canvas: Canvas
    _traces: dict[int, Trace] = field(default_factory=dict, repr=False)

    def draw(
        self,
        which: NDArray[np.int64],
        maps: Floats,
        color: NDArray[np.int64],
        threads: int | None = None,
    ) -> NDArray[Any]:
        """Draw outline which[b] under the affine map maps[b] (2, 3); (B, C, H, W)."""
        size, table, fineness = self.canvas.size, level_table(self.canvas), detail(maps)
        lookup = lookup_table(self.canvas.dtype)
        out = np.empty((len(which), *self.canvas.shape), lookup.dtype)
        chosen = (which.astype(np.int64), to_pixels(maps, size), color.astype(np.int64))
        for scale in np.unique(fineness).tolist():
            rows = np.flatnonzero(fineness == scale)
            strokes = self._trace(scale)
            work = partial(_draw_rows, *strokes, rows, *chosen, table, lookup, out)
            in_parts(work, len(rows), len(rows) * size**2 * self.canvas.channels, threads)
        return out

    def _trace(self, scale: int) -> Trace:
        if scale not in self._traces:
            self._traces[scale] = trace(self.outlines, BOX * self.canvas.size * scale)
        return self._traces[scale]


def to_pixels(maps: Floats, size: int) -> NDArray[np.float32]:
    """Maps from box units to pixels, (B, 6), from maps between [-1, 1] squares."""
    out = np.asarray(maps, float) * (size / 2)
    out[:, :, :2] *= 2 * BOX
    out[:, :, 2] += size / 2
    return out.reshape(-1, 6).astype(np.float32)


@jit
def _draw_rows(points, kinds, starts, rows, which, maps, color, table, lookup, out, low, high):  # type: ignore[no-untyped-def]
    size = out.shape[3]
    channels = out.shape[1]
    longest = 0
    for shape in range(len(starts) - 1):
        longest = max(longest, starts[shape + 1] - starts[shape])
    x = np.empty(longest, np.int32)
    y = np.empty(longest, np.int32)
    area = np.zeros((size, size + 2), np.int32)
    for b in rows[low:high]:
        start = starts[which[b]]
        count = starts[which[b] + 1] - start
        _place(points[start : start + count], maps[b], x, y)
        for c in range(channels):
            levels = table[color[b], c]
            if c > 0 and _same(levels, table[color[b], c - 1]):
                out[b, c] = out[b, c - 1]
                continue
            _accumulate(x, y, kinds[start : start + count], levels, area)
            _sum_rows(x[:count], y[:count], levels[0], area, lookup, out[b, c])
    return 0


@partial(jit, inline="always")
def _same(a, b):  # type: ignore[no-untyped-def]
    return a[0] == b[0] and a[1] == b[1] and a[2] == b[2] and a[3] == b[3]


@jit
def _place(points, m, x, y):  # type: ignore[no-untyped-def]
    one, half = np.float32(_ONE), np.float32(0.5)
    xx, xy, x0, yx, yy, y0 = m[0] * one, m[1] * one, m[2] * one, m[3] * one, m[4] * one, m[5] * one
    for i in range(len(points)):
        px, py = points[i, 0], points[i, 1]
        x[i] = np.int32(np.floor(xx * px + xy * py + x0 + half))
        y[i] = np.int32(np.floor(yx * px + yy * py + y0 + half))


@jit
def _accumulate(x, y, kinds, levels, area):  # type: ignore[no-untyped-def]
    size = area.shape[0]
    for i in range(len(kinds) - 1):
        kind = kinds[i]
        if kind == 0:
            continue
        weight = -levels[kind]
        x0, y0, x1, y1 = x[i], y[i], x[i + 1], y[i + 1]
        if y0 == y1 or weight == 0:
            continue
        if y0 > y1:
            x0, y0, x1, y1, weight = x1, y1, x0, y0, -weight
        row, last = y0 >> _BITS, (y1 - 1) >> _BITS
        if row == last:
            if 0 <= row < size:
                _add(area[row], x0, x1, y1 - y0, weight)
            continue
        slope = (x1 - x0) / (y1 - y0)
        xa, ya = x0, y0
        while row <= last:
            yb, xb = y1, x1
            if row < last:
                yb = (row + 1) << _BITS
                xb = x0 + np.int32(np.rint((yb - y0) * slope))
            if 0 <= row < size:
                _add(area[row], xa, xb, yb - ya, weight)
            xa, ya = xb, yb
            row += 1


@jit
def _add(cells, xa, xb, dy, weight):  # type: ignore[no-untyped-def]
    """Add an edge that stays in one row of cells, falling by dy from xa to xb."""
    if xa > xb:
        xa, xb = xb, xa
    cell, last = xa >> _BITS, max(xa, xb - 1) >> _BITS
    if cell == last:
        _add_cell(cells, cell, xa + xb, dy, weight)
        return
    slope = dy / (xb - xa)
    x0, y0, left = xa, 0, xa
    while cell <= last:
        x1, y1 = xb, dy
        if cell < last:
            x1 = (cell + 1) << _BITS
            y1 = np.int64(np.rint((x1 - left) * slope))
        _add_cell(cells, cell, x0 + x1, y1 - y0, weight)
        x0, y0 = x1, y1
        cell += 1


@partial(jit, inline="always")
def _add_cell(cells, cell, twice_x, dy, weight):  # type: ignore[no-untyped-def]
    """The cell gets the part of the edge's height right of it; every later cell gets all of it."""
    if cell < 0:
        cells[0] += weight * dy * (2 * _ONE)
    elif cell < len(cells) - 2:
        right = twice_x - 2 * (cell << _BITS)
        cells[cell] += weight * dy * (2 * _ONE - right)
        cells[cell + 1] += weight * dy * right


@jit
def _sum_rows(x, y, background, area, lookup, plane):  # type: ignore[no-untyped-def]
    """Turn accumulated cells into pixels and clear them again."""
    size = plane.shape[0]
    empty = lookup[background]
    top, bottom = max(y.min() >> _BITS, 0), min((y.max() >> _BITS) + 1, size)
    left, right = max(x.min() >> _BITS, 0), min((x.max() >> _BITS) + 1, size)
    plane[:top] = empty
    plane[max(bottom, 0) :] = empty
    for row in range(top, bottom):
        plane[row, :left] = empty
        plane[row, max(right, 0) :] = empty
        cells = area[row]
        total = np.int32((background << _AREA_BITS) + _HALF)
        for column in range(left, right):
            total += cells[column]
            cells[column] = 0
            plane[row, column] = lookup[min(max(total >> _AREA_BITS, 0), 255)]
        cells[max(right, 0)] = 0
