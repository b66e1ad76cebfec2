"""Draw like the original package: whole-pixel vertices, hard edges, the border filled too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everlearn.philox import Floats
from everlearn.render.canvas import Canvas
from everlearn.render.jit import jit
from everlearn.render.levels import lookup_table
from everlearn.render.trace import BOX
from everlearn.shapes import Outlines


@dataclass(frozen=True, eq=False)
class Pen:
    """Outlines and colours, ready to draw."""

    outlines: Outlines
    canvas: Canvas

    def draw(
        self,
        which: NDArray[np.int64],
        maps: Floats,
        color: NDArray[np.int64],
        threads: int | None = None,
    ) -> NDArray[Any]:
        """Draw outline which[b] under the affine map maps[b], on one thread; (B, C, H, W)."""
        canvas, size = self.canvas, self.canvas.size
        lookup = lookup_table(canvas.dtype)
        background, shape, mark = (lookup[table] for table in canvas.levels)
        out = np.empty((len(which), *canvas.shape), lookup.dtype)
        filled = np.empty((size, size), np.bool_)
        pixel = np.arange(size)
        curves = {row: self.outlines[row].points for row in set(which.tolist())}
        for b, row in enumerate(which.tolist()):
            turn, center = maps[b, :, :2], (1.0 + maps[b, :, 2]) * (size / 2)
            points = curves[row] @ (BOX * size * turn).T + center
            _fill(points.astype(np.int64), filled)
            ahead = turn[0, 0] * (pixel - center[0]) + turn[1, 0] * (pixel[:, None] - center[1]) > 0
            for c in range(canvas.channels):
                inner = np.where(ahead, mark[color[b], c], shape[color[b], c])
                out[b, c] = np.where(filled, inner, background[c])
        return out


@jit
def _fill(points, filled):  # type: ignore[no-untyped-def]
    """Mark the pixels inside a polygon of whole-number vertices, and those on its border."""
    filled[:] = False
    size = filled.shape[0]
    crossings = np.empty(len(points), np.float64)
    for y in range(size):
        count = 0
        for i in range(len(points)):
            x0, y0 = points[i]
            x1, y1 = points[(i + 1) % len(points)]
            if (y0 <= y) != (y1 <= y):
                crossings[count] = x0 + (y - y0) * (x1 - x0) / (y1 - y0)
                count += 1
        row = np.sort(crossings[:count])
        for k in range(0, count - 1, 2):
            low, high = max(np.ceil(row[k]), 0.0), min(np.floor(row[k + 1]), size - 1.0)
            filled[y, int(low) : max(int(high) + 1, 0)] = True
    for i in range(len(points)):
        _line(filled, points[i], points[(i + 1) % len(points)])


@jit
def _line(filled, start, end):  # type: ignore[no-untyped-def]
    size = filled.shape[0]
    steps = max(abs(end[0] - start[0]), abs(end[1] - start[1]), 1)
    for k in range(steps + 1):
        x = int(np.rint(start[0] + (end[0] - start[0]) * k / steps))
        y = int(np.rint(start[1] + (end[1] - start[1]) * k / steps))
        if 0 <= x < size and 0 <= y < size:
            filled[y, x] = True
