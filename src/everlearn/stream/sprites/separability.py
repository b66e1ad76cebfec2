"""How well the classes of a stream can be told apart: an upper bound for exemplar-based learners."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from everlearn.core.random import Floats
from everlearn.factors import canonical_factors, continuous_space, random_factors, theta
from everlearn.render import cpu_renderer
from everlearn.render.affine import transform_images
from everlearn.shapes import outlines
from everlearn.shapes.overlap import nearest_iou_distances, packed_masks
from everlearn.stream.sprites.stream import Stream


class Separability(NamedTuple):
    """How far apart classes are.

    Attributes:
        distances: (C,) 1 - intersection over union of each canonical shape with the nearest other.
        correct: number of images that are nearest to their class's exemplar after the true inverse map.
        images: number of images.
    """

    distances: Floats
    correct: int
    images: int

    @property
    def ceiling(self) -> float:
        """The accuracy of a learner that knows the true map and compares with exemplars."""
        return self.correct / self.images


def separability(stream: Stream, classes: int = 1000, images: int = 1000) -> Separability:
    """Measure the first `classes` classes of a stream on its canvas, under continuous factors."""
    if classes < 2 or images < 1:
        raise ValueError(
            f"separability needs at least 2 classes and 1 image, found {classes}, {images}"
        )
    ids = stream.first_class + np.arange(classes)
    curves = outlines(stream.seed, ids, stream.style)
    label = (
        np.arange(images) * classes // images if images < classes else np.arange(images) % classes
    )
    renderer = cpu_renderer(curves, replace(stream.canvas, dtype="float32"))
    maps = theta(random_factors(stream.seed, images, continuous_space()))
    drawn = torch.from_numpy(renderer.draw(label, maps, np.zeros(images, np.int64)))
    normalized = transform_images(drawn, torch.from_numpy(maps).float()).numpy()
    canonical = theta(canonical_factors(classes))
    exemplars = renderer.draw(np.arange(classes), canonical, np.zeros(classes, np.int64))
    correct = int((nearest(_flat(normalized), _flat(exemplars)) == label).sum())
    return Separability(nearest_iou_distances(packed_masks(curves.coefficients)), correct, images)


class EqualImages(NamedTuple):
    """How many test images equal an exemplar of the same or of another class, in every pixel."""

    same_class: int
    other_class: int
    images: int


def count_equal_images(stream: Stream) -> EqualImages:
    """Compare all test images of a finite stream with the exemplars of all its classes."""
    exemplars: dict[bytes, set[int]] = {}
    for task in stream:
        found = task.exemplars()
        for pixels, label in zip(_contents(found.images), found.labels.tolist(), strict=True):
            exemplars.setdefault(pixels, set()).add(label)
    same_class = other_class = images = 0
    for task in stream:
        batch = task.test.batch(slice(None))
        for pixels, label in zip(_contents(batch.images), batch.labels.tolist(), strict=True):
            classes = exemplars.get(pixels, set())
            same_class += label in classes
            other_class += bool(classes - {label})
            images += 1
    return EqualImages(same_class, other_class, images)


def _contents(images: torch.Tensor) -> list[bytes]:
    return [image.tobytes() for image in images.numpy()]


def _flat(images: NDArray[np.float32]) -> Floats:
    return images.reshape(len(images), -1).astype(np.float64)


def nearest(images: Floats, exemplars: Floats) -> NDArray[np.int64]:
    """Return the exemplar with the smallest squared distance to each image."""
    squared_norms = (exemplars**2).sum(axis=1)
    best = [(squared_norms - 2.0 * exemplars @ image).argmin() for image in images]
    return np.array(best, np.int64)
