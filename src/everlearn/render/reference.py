"""The oracle: colour many sample points of every pixel and take their mean. Slow, obvious, exact."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from everlearn.curves import evaluate
from everlearn.philox import Floats
from everlearn.render.canvas import Canvas
from everlearn.render.trace import BOX
from everlearn.shapes import Outlines

_STEPS = np.arange(256) / 256


def draw(
    outlines: Outlines,
    which: NDArray[np.int64],
    maps: Floats,
    color: NDArray[np.int64],
    canvas: Canvas,
    samples: int = 16,
) -> Floats:
    """Draw with samples x samples points a pixel; levels 0 to 255 as floats, (B, C, H, W)."""
    images = [
        _draw_one(_polygon(outlines, int(shape)), affine, int(tone), canvas, samples)
        for shape, affine, tone in zip(which, maps, color, strict=True)
    ]
    return np.stack(images) if images else np.zeros((0, *canvas.shape))


def _polygon(outlines: Outlines, shape: int) -> Floats:
    pieces = int(outlines.pieces[shape])
    return evaluate(outlines.coefficients[shape : shape + 1, :pieces], _STEPS).reshape(-1, 2)


def _draw_one(polygon: Floats, affine: Floats, tone: int, canvas: Canvas, samples: int) -> Floats:
    size = canvas.size
    at = (np.arange(size * samples) + 0.5) / samples
    turn, center = BOX * size * affine[:, :2], (1.0 + affine[:, 2]) * size / 2
    corners = polygon @ turn.T + center
    inside = np.array([_inside(corners, x=at, y=line) for line in at])
    back = np.linalg.inv(turn)
    marked = inside & (
        back[0, 0] * (at[None, :] - center[0]) + back[0, 1] * (at[:, None] - center[1]) > 0
    )
    background, shape, mark = canvas.levels
    planes = []
    for channel in range(canvas.channels):
        levels = np.where(inside, shape[tone, channel], background[channel])
        levels = np.where(marked, mark[tone, channel], levels)
        planes.append(levels.reshape(size, samples, size, samples).mean(axis=(1, 3)))
    return np.stack(planes)


def _inside(corners: Floats, x: Floats, y: float) -> NDArray[np.bool_]:
    """Even-odd rule for sample points (x, y) of one line."""
    after = np.roll(corners, -1, axis=0)
    hit = (corners[:, 1] <= y) != (after[:, 1] <= y)
    start, step = corners[hit], after[hit] - corners[hit]
    crossings = np.sort(start[:, 0] + (y - start[:, 1]) * step[:, 0] / step[:, 1])
    odd: NDArray[np.bool_] = np.searchsorted(crossings, x) % 2 == 1
    return odd
