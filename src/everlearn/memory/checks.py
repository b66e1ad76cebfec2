"""Labels and pictures as users write them, checked at the border."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from everlearn.border import check_number, check_whole

HIGHEST_LABEL = 2**62
Shape = tuple[int, int, int]


def check_shape(shape: Sequence[int]) -> Shape:
    """Return (channels, height, width), or say what is allowed."""
    if len(shape) != 3:
        raise ValueError(f"shape must be (channels, height, width), found {tuple(shape)}")
    channels, height, width = (check_whole(side, "a side of shape", 1, 2**20) for side in shape)
    return channels, height, width


def check_crop(crop: float | None) -> float | None:
    """Return the half-width of a central crop, or None for whole pictures."""
    if crop is None:
        return None
    found = check_number(crop, "crop", 0, 0.5, ", a fraction of the side,")
    if found == 0:
        raise ValueError("crop must be larger than 0; use None to compare whole pictures")
    return found


def check_labels(labels: ArrayLike | Tensor) -> list[int]:
    """Return labels as ints; one label alone is a list of one."""
    array = np.atleast_1d(labels.cpu().numpy() if isinstance(labels, Tensor) else labels)
    if array.size == 0:
        return []
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise TypeError(
            f"labels must be whole numbers from 0 to 2**62 in one row, "
            f"found {array.dtype} of shape {array.shape}"
        )
    if array.min() < 0 or array.max() > HIGHEST_LABEL:
        found = f"{array.min()} .. {array.max()}"
        raise ValueError(f"labels must lie in 0 .. 2**62, found {found}")
    return [int(label) for label in array.tolist()]


def check_different(labels: list[int]) -> list[int]:
    """Return the labels, or name those that stand twice."""
    twice = [label for label, count in Counter(labels).items() if count > 1]
    if twice:
        raise ValueError(f"each label may be given once; given more often: {name(twice)}")
    return labels


def check_pictures(images: Any, shape: Shape, count: int) -> Tensor:
    """Return pictures (N, C, H, W) as uint8; numbers from 0 to 1 are rounded to 255ths."""
    pictures = images if isinstance(images, Tensor) else torch.from_numpy(np.array(images))
    if tuple(pictures.shape) != (count, *shape):
        found = tuple(pictures.shape)
        raise ValueError(f"images for {count} labels must be {(count, *shape)}, found {found}")
    if pictures.dtype == torch.uint8:
        return pictures
    if not pictures.is_floating_point():
        raise TypeError(f"images must be uint8 or float in 0 .. 1, found {pictures.dtype}")
    return _round(pictures.detach().float())


def check_queries(queries: Tensor, shape: Shape, device: torch.device) -> None:
    """Raise unless queries are float (B, C, H, W) on the device."""
    if not queries.is_floating_point():
        raise TypeError(f"queries must be float in 0 .. 1, found {queries.dtype}")
    if queries.ndim != 4 or tuple(queries.shape[1:]) != shape:
        allowed = ", ".join(str(side) for side in shape)
        raise ValueError(f"queries must be (B, {allowed}), found {tuple(queries.shape)}")
    if queries.device != device:
        raise ValueError(f"queries must be on {device}, found {queries.device}")


def _round(pictures: Tensor) -> Tensor:
    if not pictures.numel():
        return pictures.to(torch.uint8)
    low, high = (float(end) for end in pictures.aminmax())
    if not (low >= 0 and high <= 1):
        raise ValueError(f"float images must lie in 0 .. 1, found {low} .. {high}")
    return (pictures * 255).round().to(torch.uint8)


def name(labels: Sequence[int], most: int = 8) -> str:
    """Some labels as words of a message."""
    words = ", ".join(str(label) for label in labels[:most])
    return words + (f" and {len(labels) - most} more" if len(labels) > most else "")
