"""Checks of the labels, images and shapes that callers pass to a memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from everlearn.core.validate import check_int, check_number

MAX_LABEL = 2**62
Shape = tuple[int, int, int]


def check_shape(shape: Sequence[int]) -> Shape:
    """Return (channels, height, width), or raise."""
    if len(shape) != 3:
        raise ValueError(f"shape must be (channels, height, width), found {tuple(shape)}")
    channels, height, width = (check_int(side, "a side of shape", 1, 2**20) for side in shape)
    return channels, height, width


def check_crop(crop: float | None) -> float | None:
    """Return the half-width of a central crop, None for no crop, or raise."""
    if crop is None:
        return None
    checked = check_number(crop, "crop", 0, 0.5, ", a fraction of the side,")
    if checked == 0:
        raise ValueError("crop must be larger than 0; use None to compare entire images")
    return checked


def check_labels(labels: ArrayLike | Tensor) -> list[int]:
    """Return labels as a list of ints, also for a single label, or raise."""
    array = np.atleast_1d(labels.cpu().numpy() if isinstance(labels, Tensor) else labels)
    if array.size == 0:
        return []
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise TypeError(
            f"labels must be a 1-D array of whole numbers from 0 to 2**62, "
            f"found {array.dtype} of shape {array.shape}"
        )
    if array.min() < 0 or array.max() > MAX_LABEL:
        raise ValueError(f"labels must lie in 0 .. 2**62, found {array.min()} .. {array.max()}")
    return [int(label) for label in array.tolist()]


def check_unique(labels: list[int]) -> list[int]:
    """Return the labels, or raise an error that names the repeated ones."""
    repeated = [label for label, count in Counter(labels).items() if count > 1]
    if repeated:
        raise ValueError(f"labels must be unique, found repeated: {format_labels(repeated)}")
    return labels


def check_images(images: Any, shape: Shape, count: int) -> Tensor:
    """Return images (N, C, H, W) as uint8, floats in [0, 1] rounded to 1/255, or raise."""
    tensor = images if isinstance(images, Tensor) else torch.from_numpy(np.array(images))
    if tuple(tensor.shape) != (count, *shape):
        found = tuple(tensor.shape)
        raise ValueError(f"images for {count} labels must be {(count, *shape)}, found {found}")
    if tensor.dtype == torch.uint8:
        return tensor
    if not tensor.is_floating_point():
        raise TypeError(f"images must be uint8 or float in 0 .. 1, found {tensor.dtype}")
    return _to_uint8(tensor.detach().float())


def check_queries(queries: Tensor, shape: Shape, device: torch.device) -> None:
    """Raise unless queries are float (B, C, H, W) on the device."""
    if not queries.is_floating_point():
        raise TypeError(f"queries must be float in 0 .. 1, found {queries.dtype}")
    if queries.ndim != 4 or tuple(queries.shape[1:]) != shape:
        allowed = ", ".join(str(side) for side in shape)
        raise ValueError(f"queries must be (B, {allowed}), found {tuple(queries.shape)}")
    if queries.device != device:
        raise ValueError(f"queries must be on {device}, found {queries.device}")


def format_labels(labels: Sequence[int], max_shown: int = 8) -> str:
    """Return the first labels and the number of others, for an error message."""
    shown = ", ".join(str(label) for label in labels[:max_shown])
    return shown + (f" and {len(labels) - max_shown} more" if len(labels) > max_shown else "")


def _to_uint8(images: Tensor) -> Tensor:
    if not images.numel():
        return images.to(torch.uint8)
    low, high = (float(end) for end in images.aminmax())
    if not (low >= 0 and high <= 1):
        raise ValueError(f"float images must lie in 0 .. 1, found {low} .. {high}")
    return (images * 255).round().to(torch.uint8)
