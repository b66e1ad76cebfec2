"""What a learner saw, how it normalised that, and which exemplar it found, as one picture."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageDraw, ImageFont

_INK, _FAINT = (31, 35, 40), (89, 99, 110)
_RIGHT, _WRONG = (0, 128, 90), (200, 60, 20)
_TILE, _GAP, _MARGIN, _TEXT = 80, 8, 16, 15  # pixels
_CAPTIONS = ("input", "normalised", "nearest exemplar")
_MOST = 32

Levels = NDArray[np.uint8]


def gallery(
    inputs: ArrayLike,
    normalised: ArrayLike,
    matches: ArrayLike,
    labels: Sequence[int],
    predicted: Sequence[int],
) -> bytes:
    """Draw a PNG with a column an image and a row each for input, normalised image and match.

    Args:
        inputs: (N, C, H, W), uint8 or floats from 0 to 1; so are the next two.
        labels: the true classes.
        predicted: the classes of the matches.
    """
    rows = [_check(a, n) for a, n in zip((inputs, normalised, matches), _CAPTIONS, strict=True)]
    _check_counts([len(images) for images in rows], len(labels), len(predicted))
    left = _MARGIN + max(_width(words) for words in _CAPTIONS) + 2 * _GAP
    step = max(
        _TILE, *(_width(_verdict(*pair)) + 26 for pair in zip(labels, predicted, strict=True))
    )
    size = (left + len(labels) * (step + _GAP) - _GAP + _MARGIN, _top(3) + _TEXT + 2 * _GAP)
    page = Image.new("RGB", size, "white")
    for row, (images, words) in enumerate(zip(rows, _CAPTIONS, strict=True)):
        _draw_row(page, images, words, left, step + _GAP, _top(row))
    for place, pair in enumerate(zip(labels, predicted, strict=True)):
        _mark(page, left + place * (step + _GAP), _top(3), *pair)
    return _to_png(page)


def _top(row: int) -> int:
    return _MARGIN + row * (_TILE + _GAP)


def _draw_row(page: Image.Image, images: Levels, words: str, x: int, step: int, y: int) -> None:
    pen = ImageDraw.Draw(page)
    pen.text((x - 2 * _GAP, y + _TILE / 2), words, _INK, _font(), "rm")
    for place, image in enumerate(images):
        page.paste(_tile(image), (x + place * step, y))


def _mark(page: Image.Image, x: int, y: int, label: int, predicted: int) -> None:
    """Tick or cross: the colour alone does not tell everybody."""
    pen, right = ImageDraw.Draw(page), label == predicted
    ink = _RIGHT if right else _WRONG
    tick, cross = [(0, 8), (5, 13), (14, 2)], [(1, 2), (13, 14), (7, 8), (13, 2), (1, 14)]
    pen.line([(x + u, y + v) for u, v in (tick if right else cross)], ink, 3, "curve")
    pen.text((x + 22, y + 8), _verdict(label, predicted), ink, _font(), "lm")


def _verdict(label: int, predicted: int) -> str:
    return f"{label}" if label == predicted else f"{predicted}, not {label}"


def _tile(image: Levels) -> Image.Image:
    """An image (C, H, W) as a square; small ones keep their pixels."""
    plane = image[0] if len(image) == 1 else image.transpose(1, 2, 0)
    picture = Image.fromarray(np.ascontiguousarray(plane)).convert("RGB")
    small = max(picture.size) <= _TILE
    return picture.resize(
        (_TILE, _TILE), Image.Resampling.NEAREST if small else Image.Resampling.LANCZOS
    )


def _check(images: ArrayLike, name: str) -> Levels:
    levels = np.asarray(images)
    if levels.ndim != 4 or levels.shape[1] not in (1, 3):
        raise ValueError(
            f"images of the row {name!r} must be (N, C, H, W) with C 1 or 3, found {levels.shape}"
        )
    if levels.dtype == np.uint8:
        return levels
    if levels.dtype.kind != "f":
        raise TypeError(f"images of the row {name!r} must be uint8 or floats, found {levels.dtype}")
    scaled: Levels = np.rint(255 * np.clip(np.nan_to_num(levels), 0, 1)).astype(np.uint8)
    return scaled


def _check_counts(images: Sequence[int], labels: int, predicted: int) -> None:
    if len({*images, labels, predicted}) > 1:
        raise ValueError(
            f"every row needs one image a label, found {images} images, {labels} labels and "
            f"{predicted} predictions"
        )
    if not 1 <= labels <= _MOST:
        raise ValueError(f"a gallery shows 1 .. {_MOST} images, found {labels}; give fewer")


def _width(words: str) -> int:
    return int(np.ceil(_font().getlength(words)))


def _font() -> Any:
    return ImageFont.load_default(_TEXT)


def _to_png(page: Image.Image) -> bytes:
    buffer = io.BytesIO()
    page.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()
