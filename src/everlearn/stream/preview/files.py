"""Write pictures as PNG and animations as GIF, atomically."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from everlearn.core.files import write_file


def save(picture: Image.Image, path: Path) -> Path:
    """Write a PNG."""
    return write_file(path, to_png(picture))


def to_png(picture: Image.Image) -> bytes:
    """Encode a picture as an optimised PNG."""
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def save_gif(frames: Sequence[Image.Image], path: Path, seconds: float = 0.25) -> Path:
    """Write a GIF that loops; every frame is shown for some seconds."""
    if not 0.02 <= seconds <= 60:
        raise ValueError(f"a frame of a GIF is shown for 0.02 .. 60 seconds, found {seconds}")
    palette = _palette(frames)
    first, *rest = (f.quantize(palette=palette, dither=Image.Dither.NONE) for f in frames)
    buffer = io.BytesIO()
    milliseconds = round(1000 * seconds)
    first.save(buffer, "GIF", save_all=True, append_images=rest, duration=milliseconds, loop=0)
    return write_file(path, buffer.getvalue())


def _palette(frames: Sequence[Image.Image]) -> Image.Image:
    """Make a palette of the 16 commonest colours of eight frames and 96 that approximate the others."""
    chosen = frames[:: -(-len(frames) // 8)]
    sample = Image.fromarray(np.concatenate([np.asarray(frame) for frame in chosen]))
    codes = np.asarray(sample, np.int32) @ np.array([1 << 16, 1 << 8, 1], np.int32)
    colors, counts = np.unique(codes, return_counts=True)
    first = colors[np.argsort(-counts, kind="stable")[:16], None]
    common = (first >> np.array([16, 8, 0]) & 255).astype(np.uint8)
    others = sample.quantize(96, Image.Quantize.FASTOCTREE).getpalette() or []
    table = np.concatenate((common, np.array(others, np.uint8).reshape(-1, 3)))
    # Pillow looks colours up by their upper six bits: one entry for each of these, the commonest.
    _, kept = np.unique(table >> 2, axis=0, return_index=True)
    out = Image.new("P", (1, 1))
    out.putpalette(table[np.sort(kept)].reshape(-1).tolist())
    return out
