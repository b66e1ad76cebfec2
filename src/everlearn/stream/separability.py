"""How well the classes of a stream can be told apart at all: the ceiling of every learner."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import affine_grid, grid_sample

from everlearn.factors import continuous_space, random, theta
from everlearn.likeness import masks, nearest_distances
from everlearn.philox import Floats
from everlearn.render import cpu_pen
from everlearn.shapes import Outlines, outlines
from everlearn.stream.spec import Stream


class Separability(NamedTuple):
    """How far apart classes are.

    Attributes:
        distances: (C,) 1 - intersection over union of each class with the nearest other, canonical.
        right: images whose nearest exemplar, after the true inverse map, is their own class's.
        images: images tried.
    """

    distances: Floats
    right: int
    images: int

    @property
    def ceiling(self) -> float:
        """The accuracy of a learner that knows the true map and compares with exemplars."""
        return self.right / self.images


def separability(stream: Stream, classes: int = 1000, images: int = 1000) -> Separability:
    """Measure the first `classes` classes of a stream on its canvas, under continuous factors."""
    if classes < 2 or images < 1:
        raise ValueError(
            f"separability needs 2 classes and 1 image at least, found {classes}, {images}"
        )
    ids = stream.first_class + np.arange(classes)
    curves = outlines(stream.seed, ids, stream.style)
    label = (
        np.arange(images) * classes // images if images < classes else np.arange(images) % classes
    )
    seen = _images(stream, curves, label)
    exemplars = _images(stream, curves, np.arange(classes), canonical=True)
    right = int((nearest(seen, exemplars) == label).sum())
    return Separability(nearest_distances(masks(curves.coefficients)), right, images)


def _images(
    stream: Stream, curves: Outlines, which: NDArray[np.int64], canonical: bool = False
) -> Floats:
    """Images brought into canonical form by their true map, flat (B, D)."""
    if canonical:
        maps = np.broadcast_to(np.eye(2, 3), (len(which), 2, 3)).copy()
    else:
        maps = theta(random(stream.seed, len(which), continuous_space()))
    drawn = cpu_pen(curves, stream.canvas).draw(which, maps, np.zeros(len(which), np.int64))
    images = torch.from_numpy(np.asarray(drawn, np.float32))
    if stream.canvas.dtype == "uint8":
        images /= 255
    warped = images if canonical else normalise(images, torch.from_numpy(maps).float())
    return warped.reshape(len(which), -1).numpy().astype(np.float64)


def normalise(images: torch.Tensor, maps: torch.Tensor) -> torch.Tensor:
    """Warp images into canonical form: bilinear, pixel centres, the border repeated."""
    where = affine_grid(maps, list(images.shape), align_corners=False)
    return grid_sample(images, where, padding_mode="border", align_corners=False)


def nearest(images: Floats, exemplars: Floats) -> NDArray[np.int64]:
    """The exemplar with the least squared distance to each image."""
    squares = (exemplars**2).sum(axis=1)
    best = [(squares - 2.0 * exemplars @ image).argmin() for image in images]
    return np.array(best, np.int64)
