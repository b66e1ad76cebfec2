"""How well the classes of a stream can be told apart at all: the ceiling of every learner."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from everlearn.factors import canonical, continuous_space, random, theta
from everlearn.likeness import masks, nearest_distances
from everlearn.philox import Floats
from everlearn.render import cpu_pen
from everlearn.shapes import outlines
from everlearn.stream.spec import Stream
from everlearn.warp import normalise


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
    pen = cpu_pen(curves, replace(stream.canvas, dtype="float32"))
    maps = theta(random(stream.seed, images, continuous_space()))
    drawn = torch.from_numpy(pen.draw(label, maps, np.zeros(images, np.int64)))
    seen = normalise(drawn, torch.from_numpy(maps).float()).numpy()
    whole = theta(canonical(classes))
    exemplars = pen.draw(np.arange(classes), whole, np.zeros(classes, np.int64))
    right = int((nearest(_flat(seen), _flat(exemplars)) == label).sum())
    return Separability(nearest_distances(masks(curves.coefficients)), right, images)


def _flat(images: NDArray[np.float32]) -> Floats:
    return images.reshape(len(images), -1).astype(np.float64)


def nearest(images: Floats, exemplars: Floats) -> NDArray[np.int64]:
    """The exemplar with the least squared distance to each image."""
    squares = (exemplars**2).sum(axis=1)
    best = [(squares - 2.0 * exemplars @ image).argmin() for image in images]
    return np.array(best, np.int64)
