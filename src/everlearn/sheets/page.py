"""What all pictures share: colours, letters, sprites as tiles, and files that are whole or absent."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
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
TITLE, LABEL, SMALL = 30, 22, 17
TILE = 128


@lru_cache(maxsize=16)
def font(size: int) -> Any:
    """Pillow's own letters in a size."""
    return ImageFont.load_default(size)


class Page:
    """A white page to put texts and tiles on."""

    def __init__(self, width: int, height: int) -> None:
        """Take an empty page."""
        self.image = Image.new("RGB", (width, height), PAPER)
        self.pen = ImageDraw.Draw(self.image)

    def text(
        self, x: float, y: float, words: str, size: int = LABEL, ink: Any = INK, anchor: str = "la"
    ) -> None:
        """Write a line; the anchor is Pillow's: l, m, r across and a, m, s down."""
        self.pen.text((x, y), words, fill=ink, font=font(size), anchor=anchor)

    def box(self, x: float, y: float, width: float, height: float, ink: Any) -> None:
        """Fill a rectangle."""
        if width > 0 and height > 0:
            self.pen.rectangle((x, y, x + width - 1, y + height - 1), fill=ink)

    def paste(self, tile: Image.Image, x: int, y: int) -> None:
        """Put a tile down."""
        self.image.paste(tile, (x, y))


def text_width(words: str, size: int) -> int:
    """How wide a line is."""
    return int(np.ceil(font(size).getlength(words)))


def tiles(images: Any, side: int = TILE) -> list[Image.Image]:
    """Images (B, C, H, W) as squares of `side` pixels at most: whole multiples keep pixels crisp."""
    levels = np.asarray(images)
    if levels.dtype != np.uint8:
        levels = np.rint(255 * levels).astype(np.uint8)
    return [_tile(image, side) for image in levels]


def tile_side(size: int, side: int = TILE) -> int:
    """How large the tile of an image of `size` pixels is."""
    return size * (side // size) if size <= side else side


def _tile(image: NDArray[np.uint8], side: int) -> Image.Image:
    plane = image[0] if len(image) == 1 else image.transpose(1, 2, 0)
    picture = Image.fromarray(np.ascontiguousarray(plane)).convert("RGB")
    shown = tile_side(picture.width, side)
    how = Image.Resampling.NEAREST if picture.width <= side else Image.Resampling.LANCZOS
    return picture.resize((shown, shown), how)


def save(picture: Image.Image, path: Path) -> Path:
    """Write a PNG."""
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", optimize=True)
    return write_file(path, buffer.getvalue())


def save_film(frames: Sequence[Image.Image], path: Path, seconds: float = 0.25) -> Path:
    """Write a GIF that starts again at its end.

    Args:
        seconds: how long a frame stays.
    """
    first = frames[0].quantize(64)
    rest = [frame.quantize(64, palette=first, dither=Image.Dither.NONE) for frame in frames[1:]]
    buffer = io.BytesIO()
    milliseconds = round(1000 * seconds)
    first.save(buffer, "GIF", save_all=True, append_images=rest, duration=milliseconds, loop=0)
    return write_file(path, buffer.getvalue())


def write_file(path: Path, content: bytes) -> Path:
    """Write a file under another name and rename it, so that it is whole or not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return path
