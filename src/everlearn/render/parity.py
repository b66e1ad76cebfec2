"""Render like the original package: integer vertices, no anti-aliasing, boundary pixels filled.

A pixel is filled where its centre lies inside the polygon, by the even-odd rule, or where a line between
two vertices is drawn. Vertices are float64 numbers truncated to whole pixels; all that follows is integer
arithmetic, so that render.parity_kernel fills the same pixels.

A pixel whose centre lies on an edge is part of the line drawn there, so it makes no difference to which
side such a centre is counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everlearn.core.random import Floats
from everlearn.render.canvas import Canvas
from everlearn.render.color_tables import hard_edge_values
from everlearn.render.edges import BOX_FRACTION
from everlearn.render.jit import jit
from everlearn.render.thread_pool import parallel_for
from everlearn.shapes import Outlines

# Bits of a cell: an odd number of edges crosses its row between the cell before it and this one; a line
# is drawn through it.
_CROSSED = 1
_BOUNDARY = 2


@dataclass(frozen=True, eq=False)
class ParityRenderer:
    """Outlines and a canvas, prepared for rendering."""

    outlines: Outlines
    canvas: Canvas

    @cached_property
    def points(self) -> Floats:
        """Vertices of the polygons in box units (S, 1000, 2)."""
        return self.outlines.points

    def draw(
        self,
        which: NDArray[np.int64],
        maps: Floats,
        color: NDArray[np.int64],
        threads: int | None = None,
    ) -> NDArray[Any]:
        """Render outline which[b] under the affine map maps[b] (2, 3); return (B, C, H, W)."""
        canvas = self.canvas
        values = hard_edge_values(canvas)
        out = np.empty((len(which), *canvas.shape), values.dtype)
        images = (which.astype(np.int64), maps.astype(np.float64), color.astype(np.int64))
        work = partial(_draw_rows, self.points, *images, BOX_FRACTION * canvas.size, values, out)
        parallel_for(work, len(which), out.size, threads)
        return out


@jit
def _draw_rows(points, which, maps, color, box, values, out, low, high):  # type: ignore[no-untyped-def]
    """Render images low .. high - 1; threads share everything but these images of `out`."""
    size = out.shape[3]
    count = points.shape[1]
    # Scratch memory of this thread, used for all its images.
    x = np.empty(count, np.int64)
    y = np.empty(count, np.int64)
    cells = np.zeros((size, size), np.uint8)
    for b in range(low, high):
        m = maps[b]
        center_x = (1.0 + m[0, 2]) * (size / 2)
        center_y = (1.0 + m[1, 2]) * (size / 2)
        for i in range(count):
            px, py = points[which[b], i]
            # Truncated towards zero, as the original package does.
            x[i] = np.int64(px * (box * m[0, 0]) + py * (box * m[0, 1]) + center_x)
            y[i] = np.int64(px * (box * m[1, 0]) + py * (box * m[1, 1]) + center_y)
        for i in range(count):
            following = i + 1 if i + 1 < count else 0
            _set_boundary(cells, x[i], y[i])
            add_edge(cells, x[i], y[i], x[following], y[following])
        _paint(cells, x, y, m, center_x, center_y, values[color[b]], out[b])
    return 0


@jit
def add_edge(cells, xa, ya, xb, yb):  # type: ignore[no-untyped-def]
    """Mark where an edge crosses rows and the pixels of its line, except those of its ends.

    Step k of n, one per pixel of the longer axis, is at x + side * rest_x / n, y + rest_y / n. Both
    fractions are less than 1, and the one of the longer axis is 0.
    """
    size = cells.shape[0]
    if ya > yb:
        xa, ya, xb, yb = xb, yb, xa, ya
    side = 1 if xb > xa else -1
    width = abs(xb - xa)
    height = yb - ya
    n = max(width, height)
    x, y = xa, ya
    rest_x, rest_y = 0, 0
    # Rows ya .. yb - 1 are crossed: half-open, so that a vertex is counted once.
    new_row = height > 0
    for k in range(n):
        if new_row and 0 <= y < size:
            # The first column at or right of the crossing, which lies between steps k - 1 and k.
            rounds_up = rest_x > 0 if side > 0 else rest_y > 0
            column = x + 1 if rounds_up else x
            if column < size:
                cells[y, max(column, 0)] ^= _CROSSED
        if k > 0:
            line_x = x + side if _rounds_away(rest_x, n, x) else x
            line_y = y + 1 if _rounds_away(rest_y, n, y) else y
            _set_boundary(cells, line_x, line_y)
        rest_x += width
        if rest_x >= n:
            rest_x -= n
            x += side
        rest_y += height
        new_row = rest_y >= n
        if new_row:
            rest_y -= n
            y += 1


@jit
def _rounds_away(rest, n, base):  # type: ignore[no-untyped-def]
    """Return whether base +- rest / n rounds away from base; halves go to the even number."""
    return 2 * rest > n or (2 * rest == n and base % 2 == 1)


@jit
def _set_boundary(cells, x, y):  # type: ignore[no-untyped-def]
    size = cells.shape[0]
    if 0 <= x < size and 0 <= y < size:
        cells[y, x] |= _BOUNDARY


@jit
def _paint(cells, x, y, m, center_x, center_y, values, image):  # type: ignore[no-untyped-def]
    """Turn cells into pixels of all channels, and clear them for the next image."""
    channels, size = image.shape[:2]
    # Nothing outside the bounding box of the vertices is filled.
    top = max(y.min(), 0)
    bottom = min(y.max() + 1, size)
    left = max(x.min(), 0)
    right = min(x.max() + 1, size)
    for c in range(channels):
        image[c] = values[c, 0]
    for row in range(top, bottom):
        vertical = m[1, 0] * (row - center_y)
        inside = 0
        for column in range(left, right):
            cell = cells[row, column]
            cells[row, column] = 0
            inside ^= cell & _CROSSED
            if inside or cell & _BOUNDARY:
                marked = m[0, 0] * (column - center_x) + vertical > 0
                for c in range(channels):
                    image[c, row, column] = values[c, 2 if marked else 1]
