"""Lookup tables that the CPU and GPU renderers share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from everlearn.render.canvas import Canvas


def edge_levels(canvas: Canvas) -> NDArray[np.int32]:
    """Return (K, C, 4) for every colour and channel: the background, then the step of each edge type."""
    background, shape, mark = canvas.levels
    table = np.empty((*shape.shape, 4), np.int32)
    table[..., 0] = background
    table[..., 1] = shape - background
    table[..., 2] = mark - background
    table[..., 3] = mark - shape
    return table


def hard_edge_values(canvas: Canvas) -> NDArray[Any]:
    """Return (K, C, 3) pixel values for every colour and channel: background, shape and mark."""
    background, shape, mark = canvas.levels
    levels = np.stack((np.broadcast_to(background, shape.shape), shape, mark), axis=-1)
    values: NDArray[Any] = pixel_values(canvas.dtype)[levels]
    return values


def pixel_values(dtype: str) -> NDArray[Any]:
    """Return the pixel values of the 256 levels in an image of a dtype."""
    levels = np.arange(256, dtype=np.uint8)
    return levels if dtype == "uint8" else levels.astype(np.float32) / np.float32(255)
