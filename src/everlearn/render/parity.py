"""Render like the original package: integer vertices, no anti-aliasing, boundary pixels filled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everlearn.core.random import Floats
from everlearn.render.canvas import Canvas
from everlearn.render.color_tables import pixel_values
from everlearn.render.edges import BOX_FRACTION
from everlearn.render.jit import jit
from everlearn.shapes import Outlines


@dataclass(frozen=True, eq=False)
class ParityRenderer:
    """Outlines and a canvas, prepared for rendering."""

    outlines: Outlines
    canvas: Canvas

    def draw(
        self,
        which: NDArray[np.int64],
        maps: Floats,
        color: NDArray[np.int64],
        threads: int | None = None,
    ) -> NDArray[Any]:
        """Render outline which[b] under maps[b] (2, 3) in one thread; return (B, C, H, W)."""
        canvas = self.canvas
        size = canvas.size
        values = pixel_values(canvas.dtype)
        background, shape, mark = (values[levels] for levels in canvas.levels)
        out = np.empty((len(which), *canvas.shape), values.dtype)
        filled = np.empty((size, size), np.bool_)
        pixel = np.arange(size)
        curves = {row: self.outlines[row].points for row in set(which.tolist())}
        for b, row in enumerate(which.tolist()):
            linear = maps[b, :, :2]
            center = (1.0 + maps[b, :, 2]) * (size / 2)
            points = curves[row] @ (BOX_FRACTION * size * linear).T + center
            _fill(points.astype(np.int64), filled)
            dx = pixel - center[0]
            dy = pixel[:, None] - center[1]
            marked = linear[0, 0] * dx + linear[1, 0] * dy > 0
            for c in range(canvas.channels):
                foreground = np.where(marked, mark[color[b], c], shape[color[b], c])
                out[b, c] = np.where(filled, foreground, background[c])
        return out


@jit
def _fill(points, filled):  # type: ignore[no-untyped-def]
    """Set the pixels inside a polygon with integer vertices, by the even-odd rule, and on its boundary."""
    filled[:] = False
    size = filled.shape[0]
    # Scan line by scan line: sorted crossings with the polygon bound runs of inside pixels, in pairs.
    crossings = np.empty(len(points), np.float64)
    for y in range(size):
        count = 0
        for i in range(len(points)):
            x0, y0 = points[i]
            x1, y1 = points[(i + 1) % len(points)]
            # Half-open, so that a vertex on the scan line is counted once.
            if (y0 <= y) != (y1 <= y):
                crossings[count] = x0 + (y - y0) * (x1 - x0) / (y1 - y0)
                count += 1
        row = np.sort(crossings[:count])
        for k in range(0, count - 1, 2):
            low = max(np.ceil(row[k]), 0.0)
            high = min(np.floor(row[k + 1]), size - 1.0)
            filled[y, int(low) : max(int(high) + 1, 0)] = True
    for i in range(len(points)):
        _line(filled, points[i], points[(i + 1) % len(points)])


@jit
def _line(filled, start, end):  # type: ignore[no-untyped-def]
    """Set the pixels of a line, clipped to the image: one pixel per step along its longer axis."""
    size = filled.shape[0]
    steps = max(abs(end[0] - start[0]), abs(end[1] - start[1]), 1)
    for k in range(steps + 1):
        x = int(np.rint(start[0] + (end[0] - start[0]) * k / steps))
        y = int(np.rint(start[1] + (end[1] - start[1]) * k / steps))
        if 0 <= x < size and 0 <= y < size:
            filled[y, x] = True
