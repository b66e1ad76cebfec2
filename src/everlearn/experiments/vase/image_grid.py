"""Draw rows of images, each with a label, as one PNG."""

from __future__ import annotations

import io
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from everlearn.stream.preview.page import GAP, INK, RULE, SMALL, Page, text_width, tile_side, tiles

_SIDE = 64  # pixels of an image


def draw_image_grid(rows: Mapping[str, NDArray[np.floating]]) -> bytes:
    """Draw labelled rows of images (n, 1, H, W), floats from 0 to 1, as a PNG."""
    first = next(iter(rows.values()))
    side = tile_side(first.shape[-1], _SIDE)
    left = GAP + max(text_width(label, SMALL) for label in rows) + 2 * GAP
    columns = max(len(images) for images in rows.values())
    page = Page(left + columns * (side + GAP), GAP + len(rows) * (side + GAP))
    for row, (label, images) in enumerate(rows.items()):
        y = GAP + row * (side + GAP)
        page.text(left - 2 * GAP, y + side / 2, label, SMALL, INK, "rm")
        for column, tile in enumerate(tiles(images, _SIDE)):
            x = left + column * (side + GAP)
            page.box(x - 1, y - 1, side + 2, side + 2, RULE)  # a frame around white images
            page.paste(tile, x, y)
    buffer = io.BytesIO()
    page.image.convert("L").save(buffer, "PNG", optimize=True)
    return buffer.getvalue()
