"""Encode and decode 8-bit levels as PNG, without loss."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everlearn.stream.export.task_arrays import Levels


def encode(image: Levels) -> bytes:
    """Encode one image (C, H, W)."""
    channels = len(image)
    if channels not in (1, 3):
        raise ValueError(
            f"PNG holds grey (1) or RGB (3) images, found {channels} channels; use the format 'npz'"
        )
    buffer = BytesIO()
    pixels = image[0] if channels == 1 else np.ascontiguousarray(image.transpose(1, 2, 0))
    _pillow().fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def decode(data: bytes) -> Levels:
    """Decode one image to (C, H, W)."""
    with _pillow().open(BytesIO(data)) as file:
        pixels: NDArray[np.uint8] = np.array(file)
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            "PNG images need Pillow; install it with: pip install pillow, or use the format 'npz'"
        ) from error
    return Image
