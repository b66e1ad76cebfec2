"""Tables that both back ends share: what an edge adds, and what a level looks like."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from everlearn.render.canvas import Canvas


def level_table(canvas: Canvas) -> NDArray[np.int32]:
    """For every colour and channel (K, C, 4): the background, and what each kind of edge adds."""
    background, shape, mark = canvas.levels
    table = np.empty((*shape.shape, 4), np.int32)
    table[..., 0] = background
    table[..., 1] = shape - background
    table[..., 2] = mark - background
    table[..., 3] = mark - shape
    return table


def lookup_table(dtype: str) -> NDArray[Any]:
    """What the 256 levels look like in an image."""
    levels = np.arange(256, dtype=np.uint8)
    return levels if dtype == "uint8" else levels.astype(np.float32) / np.float32(255)
