"""A picture of test images, their normalised versions and the exemplars they were matched with."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageDraw, ImageFont

_TEXT_COLOR = (31, 35, 40)
_CORRECT, _WRONG = (0, 128, 90), (200, 60, 20)
_TILE, _GAP, _MARGIN, _TEXT = 80, 8, 16, 15  # pixels
_TICK = ((0, 8), (5, 13), (14, 2))
_CROSS = ((1, 2), (13, 14), (7, 8), (13, 2), (1, 14))
_CAPTIONS = ("input", "normalised", "nearest exemplar")
_MAX_IMAGES = 32

Levels = NDArray[np.uint8]


def gallery(
    inputs: ArrayLike,
    normalised: ArrayLike,
    matches: ArrayLike,
    labels: Sequence[int],
    predicted: Sequence[int],
) -> bytes:
    """Draw a PNG with one column per image and rows for input, normalised image and match.

    Args:
        inputs: (N, C, H, W), uint8 or floats from 0 to 1, like the next two.
        labels: the true classes.
        predicted: the classes of the matches.
    """
    arrays = (inputs, normalised, matches)
    rows = [_to_uint8(array, name) for array, name in zip(arrays, _CAPTIONS, strict=True)]
    _check_counts([len(images) for images in rows], len(labels), len(predicted))
    left = _MARGIN + max(_text_width(caption) for caption in _CAPTIONS) + 2 * _GAP
    step = max(
        _TILE, *(_text_width(_outcome(*pair)) + 26 for pair in zip(labels, predicted, strict=True))
    )
    size = (left + len(labels) * (step + _GAP) - _GAP + _MARGIN, _top(3) + _TEXT + 2 * _GAP)
    page = Image.new("RGB", size, "white")
    for row, (images, caption) in enumerate(zip(rows, _CAPTIONS, strict=True)):
        _draw_row(page, images, caption, left, step + _GAP, _top(row))
    for place, pair in enumerate(zip(labels, predicted, strict=True)):
        _draw_outcome(page, left + place * (step + _GAP), _top(3), *pair)
    return _to_png(page)


def _top(row: int) -> int:
    return _MARGIN + row * (_TILE + _GAP)


def _draw_row(page: Image.Image, images: Levels, caption: str, x: int, step: int, y: int) -> None:
    pen = ImageDraw.Draw(page)
    pen.text((x - 2 * _GAP, y + _TILE / 2), caption, _TEXT_COLOR, _font(), "rm")
    for place, image in enumerate(images):
        page.paste(_tile(image), (x + place * step, y))


def _draw_outcome(page: Image.Image, x: int, y: int, label: int, predicted: int) -> None:
    """Draw a tick or a cross, which do not depend on seeing colours."""
    pen = ImageDraw.Draw(page)
    correct = label == predicted
    color = _CORRECT if correct else _WRONG
    stroke = _TICK if correct else _CROSS
    pen.line([(x + u, y + v) for u, v in stroke], color, 3, "curve")
    pen.text((x + 22, y + 8), _outcome(label, predicted), color, _font(), "lm")


def _outcome(label: int, predicted: int) -> str:
    return f"{label}" if label == predicted else f"{predicted}, not {label}"


def _tile(image: Levels) -> Image.Image:
    """Scale an image (C, H, W) to a square; small images keep crisp pixels."""
    plane = image[0] if len(image) == 1 else image.transpose(1, 2, 0)
    picture = Image.fromarray(np.ascontiguousarray(plane)).convert("RGB")
    small = max(picture.size) <= _TILE
    return picture.resize(
        (_TILE, _TILE), Image.Resampling.NEAREST if small else Image.Resampling.LANCZOS
    )


def _to_uint8(images: ArrayLike, name: str) -> Levels:
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
            f"every row needs one image per label, found {images} images, {labels} labels and "
            f"{predicted} predictions"
        )
    if not 1 <= labels <= _MAX_IMAGES:
        raise ValueError(f"a gallery shows 1 .. {_MAX_IMAGES} images, found {labels}; give fewer")


def _text_width(text: str) -> int:
    return int(np.ceil(_font().getlength(text)))


def _font() -> Any:
    return ImageFont.load_default(_TEXT)


def _to_png(page: Image.Image) -> bytes:
    buffer = io.BytesIO()
    page.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()
