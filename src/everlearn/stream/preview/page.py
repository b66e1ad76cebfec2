"""What all pictures share: colours, fonts, spacing, and images as tiles."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

PAPER = (255, 255, 255)
INK = (31, 35, 40)
FAINT = (105, 112, 120)
RULE = (225, 228, 232)
NEW = (9, 105, 218)
OLD = (218, 120, 10)
MARGIN = 36
GAP = 8
TITLE = 30
LABEL = 22
SMALL = 17
TILE = 128


@lru_cache(maxsize=16)
def font(size: int) -> Any:
    """Return Pillow's default font in a size."""
    return ImageFont.load_default(size)


class Page:
    """A white page for text and tiles."""

    def __init__(self, width: int, height: int) -> None:
        """Make an empty page."""
        self.image = Image.new("RGB", (width, height), PAPER)
        self.pen = ImageDraw.Draw(self.image)

    def text(
        self, x: float, y: float, text: str, size: int = LABEL, ink: Any = INK, anchor: str = "la"
    ) -> None:
        """Write a line; the anchor is Pillow's: l, m, r across and a, m, s down."""
        self.pen.text((x, y), text, fill=ink, font=font(size), anchor=anchor)

    def box(self, x: float, y: float, width: float, height: float, ink: Any) -> None:
        """Fill a rectangle."""
        if width > 0 and height > 0:
            self.pen.rectangle((x, y, x + width - 1, y + height - 1), fill=ink)

    def paste(self, tile: Image.Image, x: int, y: int) -> None:
        """Paste a tile."""
        self.image.paste(tile, (x, y))


def text_width(text: str, size: int) -> int:
    """Return the width of a line in pixels."""
    return int(np.ceil(font(size).getlength(text)))


def tiles(images: Any, side: int = TILE) -> list[Image.Image]:
    """Convert images (B, C, H, W) to squares of at most `side` pixels; integer scaling keeps them crisp."""
    levels = np.asarray(images)
    if levels.dtype != np.uint8:
        levels = np.rint(255 * levels).astype(np.uint8)
    return [_tile(image, side) for image in levels]


def tile_side(size: int, side: int = TILE) -> int:
    """Return the side of the tile of an image of `size` pixels."""
    return size * (side // size) if size <= side else side


def _tile(image: NDArray[np.uint8], side: int) -> Image.Image:
    plane = image[0] if len(image) == 1 else image.transpose(1, 2, 0)
    picture = Image.fromarray(np.ascontiguousarray(plane)).convert("RGB")
    shown = tile_side(picture.width, side)
    method = Image.Resampling.NEAREST if picture.width <= side else Image.Resampling.LANCZOS
    return picture.resize((shown, shown), method)
