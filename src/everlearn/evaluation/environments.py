"""Environments of a stream as the evaluation of codes sees them: fixed images of each task."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from everlearn.core.random import Floats, Purpose, permutation
from everlearn.evaluation.plan import spread
from everlearn.factors import Factors
from everlearn.learner import Encodes
from everlearn.stream import Split, Task, TaskStream
from everlearn.stream.task import Ints

_BATCH = 2000  # images drawn and encoded together: 32 MB of 64 x 64 pixels
_FACTOR_IMAGES = 3000
# Substreams of the orders of images, beside those of the epochs of probes.
_TRAIN_SUBSTREAM = 8
_TEST_SUBSTREAM = 9
_FACTOR_SUBSTREAM = 10


class Sample(NamedTuple):
    """Images of a split, always the same ones, drawn again each time.

    Attributes:
        draw: draws the images of rows on a device.
        rows: (n,), shuffled, so that images drawn together are of all classes.
        labels: (n,) class ids.
        factors: of length n, if the data have any.
    """

    draw: Callable[[Tensor], Tensor]
    rows: Tensor
    labels: Ints
    factors: Factors | None

    def batches(self) -> Iterator[Tensor]:
        """Draw the images, one batch at a time."""
        return (self.draw(rows) for rows in torch.split(self.rows, _BATCH))


class Environment(NamedTuple):
    """One task of a stream.

    Attributes:
        task: where the images come from.
        classes: ids of all its classes, rising.
        train: images that probes are trained on.
        test: images that they are tested on.
        described: test images for the metrics of disentanglement.
        low: the smallest x and y, (2,).
        span: the ranges of x and y, (2,); 0 if they do not vary.
    """

    task: Task
    classes: Ints
    train: Sample
    test: Sample
    described: Sample
    low: Floats
    span: Floats

    @property
    def has_positions(self) -> bool:
        """Whether both x and y vary."""
        return bool((self.span > 0).all())

    def labels(self, sample: Sample) -> Tensor:
        """Return the classes of images, numbered from 0 in this environment, (n,)."""
        return torch.from_numpy(np.searchsorted(self.classes, sample.labels)).to(sample.rows.device)

    def positions(self, sample: Sample) -> Tensor:
        """Return x and y of images, scaled to 0 .. 1 in this environment; 0 if they do not vary, (n, 2)."""
        positions = np.zeros((len(sample.rows), 2), np.float32)
        if sample.factors is not None and self.has_positions:
            positions[:] = (np.stack(sample.factors[-2:], axis=1) - self.low) / self.span
        return torch.from_numpy(positions).to(sample.rows.device)


class Environments:
    """The environments of a stream on a device, kept once they are made."""

    def __init__(
        self,
        stream: TaskStream,
        train_images: int,
        test_images: int,
        device: str,
        split: str = "test",
    ) -> None:
        """Make none yet.

        Args:
            train_images: to train probes on, at most, of one environment.
            test_images: to test them on, at most.
            split: which images are tested on: test or val.
        """
        self._stream = stream
        self._train_images = train_images
        self._test_images = test_images
        self._device = device
        self._split = split
        self._kept: dict[int, Environment] = {}

    def of_tasks(self, tasks: list[int]) -> list[Environment]:
        """Return those of some tasks, without any that has no images to train or test on."""
        for index in tasks:
            if index not in self._kept:
                self._kept[index] = self._make(self._stream[index])
        kept = [self._kept[index] for index in tasks]
        return [each for each in kept if len(each.train.rows) and len(each.test.rows)]

    def _make(self, task: Task) -> Environment:
        tested = task.split(self._split)
        classes = np.unique(np.concatenate([task.train.labels, tested.labels]))
        train = _sample(task, task.train, self._train_images, _TRAIN_SUBSTREAM, self._device)
        test = _sample(task, tested, self._test_images, _TEST_SUBSTREAM, self._device)
        described = _sample(task, tested, _FACTOR_IMAGES, _FACTOR_SUBSTREAM, self._device)
        return Environment(task, classes, train, test, described, *_range(task.train))


def _sample(task: Task, split: Split, max_images: int, substream: int, device: str) -> Sample:
    """Choose rows of a split, evenly spread, and shuffle them by the task's seed."""
    chosen = np.array(spread(len(split), max_images), np.int64)
    rows = chosen[
        permutation(task.seed, Purpose.PROBES, task.index, len(chosen), substream=substream)
    ]
    factors = split.factors and split.factors.take(rows)
    placed = torch.from_numpy(rows).to(device)
    return Sample(split.to(device).images, placed, split.labels[rows], factors)


def _range(split: Split) -> tuple[Floats, Floats]:
    """Return the smallest x and y of a split, and their ranges."""
    if split.factors is None or not len(split):
        return np.zeros(2), np.zeros(2)
    positions = np.stack(split.factors[-2:], axis=1).astype(np.float64)
    return positions.min(0), np.ptp(positions, axis=0)


def encode(learner: Encodes, sample: Sample) -> tuple[Tensor, Tensor]:
    """Return means and standard deviations of the codes of images, (n, N) each."""
    with torch.no_grad():
        codes = [learner.codes(images) for images in sample.batches()]
    means, deviations = zip(*codes, strict=True)
    return torch.cat(means), torch.cat(deviations)
