"""Affine maps (B, 2, 3) of image coordinates in [-1, 1], y down, and images seen through them."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample


def normalise(images: Tensor, maps: Tensor) -> Tensor:
    """See images through maps: the result at u is the image at map(u).

    Bilinear, pixel centres, the border repeated: black corners would look like shapes.
    """
    if not len(images):
        return images
    where = affine_grid(maps, list(images.shape), align_corners=False)
    return grid_sample(images, where, padding_mode="border", align_corners=False)


def compose(outer: Tensor, inner: Tensor) -> Tensor:
    """The map u -> outer(inner(u))."""
    turn = outer[..., :2] @ inner[..., :2]
    shift = outer[..., :2] @ inner[..., 2:] + outer[..., 2:]
    return torch.cat((turn, shift), dim=-1)


def invert(maps: Tensor) -> Tensor:
    """The map that undoes another; 2 x 2 inverses are written out, so that no library is asked."""
    a, b, c, d = maps[..., 0, 0], maps[..., 0, 1], maps[..., 1, 0], maps[..., 1, 1]
    rows = torch.stack((d, -b, -c, a), dim=-1) / (a * d - b * c)[..., None]
    turn = rows.reshape(*maps.shape[:-2], 2, 2)
    return torch.cat((turn, -turn @ maps[..., 2:]), dim=-1)


def similar(maps: Tensor) -> Tensor:
    """The nearest maps that only scale, turn and shift."""
    cosine = (maps[..., 0, 0] + maps[..., 1, 1]) / 2
    sine = (maps[..., 1, 0] - maps[..., 0, 1]) / 2
    turn = torch.stack((cosine, -sine, sine, cosine), dim=-1).reshape(*maps.shape[:-2], 2, 2)
    return torch.cat((turn, maps[..., 2:]), dim=-1)


def similarities(
    scale: NDArray[np.float64], angle: NDArray[np.float64], shift: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Maps (..., 2, 3) that turn by an angle (radians), scale, and shift by (..., 2)."""
    cosine, sine = scale * np.cos(angle), scale * np.sin(angle)
    rows = (cosine, -sine, shift[..., 0], sine, cosine, shift[..., 1])
    return np.stack(rows, axis=-1).reshape(*scale.shape, 2, 3).astype(np.float32)
