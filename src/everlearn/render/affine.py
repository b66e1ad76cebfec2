"""Affine maps (B, 2, 3) of image coordinates in [-1, 1], y down, and images resampled under them."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample


def transform_images(images: Tensor, maps: Tensor) -> Tensor:
    """Resample images under maps: the result at u is the image at map(u).

    Bilinear, without aligned corners, with repeated borders: black borders would look like shapes.
    """
    if not len(images):
        return images
    grid = affine_grid(maps, list(images.shape), align_corners=False)
    return grid_sample(images, grid, padding_mode="border", align_corners=False)


def compose(outer: Tensor, inner: Tensor) -> Tensor:
    """Return the map u -> outer(inner(u))."""
    linear = outer[..., :2] @ inner[..., :2]
    translation = outer[..., :2] @ inner[..., 2:] + outer[..., 2:]
    return torch.cat((linear, translation), dim=-1)


def invert(maps: Tensor) -> Tensor:
    """Return the inverse maps; written out for 2 x 2 matrices, since a solver would sync the device."""
    a, b, c, d = maps[..., 0, 0], maps[..., 0, 1], maps[..., 1, 0], maps[..., 1, 1]
    rows = torch.stack((d, -b, -c, a), dim=-1) / (a * d - b * c)[..., None]
    linear = rows.reshape(*maps.shape[:-2], 2, 2)
    return torch.cat((linear, -linear @ maps[..., 2:]), dim=-1)


def nearest_similarity(maps: Tensor) -> Tensor:
    """Return the nearest similarity maps, which only scale, rotate and translate."""
    cosine = (maps[..., 0, 0] + maps[..., 1, 1]) / 2
    sine = (maps[..., 1, 0] - maps[..., 0, 1]) / 2
    linear = torch.stack((cosine, -sine, sine, cosine), dim=-1).reshape(*maps.shape[:-2], 2, 2)
    return torch.cat((linear, maps[..., 2:]), dim=-1)


def similarity_maps(
    scale: NDArray[np.float64], angle: NDArray[np.float64], translation: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Return maps (..., 2, 3) that rotate by an angle (radians), scale, and translate by (..., 2)."""
    cosine = scale * np.cos(angle)
    sine = scale * np.sin(angle)
    rows = (cosine, -sine, translation[..., 0], sine, cosine, translation[..., 1])
    return np.stack(rows, axis=-1).reshape(*scale.shape, 2, 3).astype(np.float32)
