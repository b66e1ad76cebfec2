"""Pictures of images in rows, with words before each row."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from everlearn.sheets.page import GAP, INK, RULE, SMALL, Page, text_width, tile_side, tiles

_SIDE = 64  # pixels of an image


def draw_sheet(rows: Mapping[str, Any]) -> bytes:
    """Draw a PNG with a row of images (n, 1, H, W), floats from 0 to 1, after each of some words."""
    first = next(iter(rows.values()))
    side = tile_side(first.shape[-1], _SIDE)
    left = GAP + max(text_width(words, SMALL) for words in rows) + 2 * GAP
    columns = max(len(images) for images in rows.values())
    page = Page(left + columns * (side + GAP), GAP + len(rows) * (side + GAP))
    for row, (words, images) in enumerate(rows.items()):
        y = GAP + row * (side + GAP)
        page.text(left - 2 * GAP, y + side / 2, words, SMALL, INK, "rm")
        for place, tile in enumerate(tiles(images, _SIDE)):
            x = left + place * (side + GAP)
            page.box(x - 1, y - 1, side + 2, side + 2, RULE)  # or white images have no edge
            page.paste(tile, x, y)
    buffer = io.BytesIO()
    page.image.convert("L").save(buffer, "PNG", optimize=True)
    return buffer.getvalue()
