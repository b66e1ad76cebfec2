"""The oracle: the mean colour of many sample points in every pixel. Slow and obviously correct."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from everlearn.core.random import Floats
from everlearn.render.canvas import Canvas
from everlearn.render.edges import BOX_FRACTION
from everlearn.shapes import Outlines
from everlearn.shapes.geometry import evaluate

_STEPS = np.arange(256) / 256


def draw(
    outlines: Outlines,
    which: NDArray[np.int64],
    maps: Floats,
    color: NDArray[np.int64],
    canvas: Canvas,
    samples: int = 16,
) -> Floats:
    """Render with samples x samples points per pixel; return float levels 0 to 255, (B, C, H, W)."""
    images = [
        _draw_image(_polygon(outlines, int(shape)), affine, int(index), canvas, samples)
        for shape, affine, index in zip(which, maps, color, strict=True)
    ]
    return np.stack(images) if images else np.zeros((0, *canvas.shape))


def _polygon(outlines: Outlines, shape: int) -> Floats:
    pieces = int(outlines.pieces[shape])
    return evaluate(outlines.coefficients[shape : shape + 1, :pieces], _STEPS).reshape(-1, 2)


def _draw_image(
    polygon: Floats, affine: Floats, color: int, canvas: Canvas, samples: int
) -> Floats:
    size = canvas.size
    at = (np.arange(size * samples) + 0.5) / samples
    linear = BOX_FRACTION * size * affine[:, :2]
    center = (1.0 + affine[:, 2]) * size / 2
    vertices = polygon @ linear.T + center
    inside = np.array([_inside(vertices, x=at, y=line) for line in at])
    inverse = np.linalg.inv(linear)
    # The mark is where x > 0 in box units.
    marked = inside & (
        inverse[0, 0] * (at[None, :] - center[0]) + inverse[0, 1] * (at[:, None] - center[1]) > 0
    )
    background, shape, mark = canvas.levels
    planes = []
    for channel in range(canvas.channels):
        levels = np.where(inside, shape[color, channel], background[channel])
        levels = np.where(marked, mark[color, channel], levels)
        planes.append(levels.reshape(size, samples, size, samples).mean(axis=(1, 3)))
    return np.stack(planes)


def _inside(vertices: Floats, x: Floats, y: float) -> NDArray[np.bool_]:
    """Return which points (x, y) of a scan line are inside the polygon, by the even-odd rule."""
    following = np.roll(vertices, -1, axis=0)
    hit = (vertices[:, 1] <= y) != (following[:, 1] <= y)
    start = vertices[hit]
    step = following[hit] - start
    crossings = np.sort(start[:, 0] + (y - start[:, 1]) * step[:, 0] / step[:, 1])
    odd: NDArray[np.bool_] = np.searchsorted(crossings, x) % 2 == 1
    return odd
