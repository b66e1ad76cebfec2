"""Environments of a stream as exams of codes see them: images of each, the same ones every time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from everlearn.exam.plan import spread
from everlearn.factors import Factors
from everlearn.learner import Encodes
from everlearn.philox import Floats, Purpose, permutation
from everlearn.stream.task import Ints, Split, Task

# Images drawn and encoded together, and thrown away then: 32 MB of 64 x 64 pixels.
_AT_ONCE = 2000
_LOOK = 3000
_LANES = range(8, 11)  # of orders, beside those of the epochs of probes


class Sample(NamedTuple):
    """Images of a split, always the same ones, drawn anew each time.

    Attributes:
        draw: from rows on a device to images there.
        rows: (n,), in an order of chance: images that are drawn together are of all kinds.
        labels: (n,) class ids.
        factors: of length n, where the data have any.
    """

    draw: Callable[[Tensor], Tensor]
    rows: Tensor
    labels: Ints
    factors: Factors | None

    def parts(self) -> Iterator[Tensor]:
        """Draw the images, some at once."""
        return (self.draw(rows) for rows in torch.split(self.rows, _AT_ONCE))


class Environment(NamedTuple):
    """One task of a stream.

    Attributes:
        task: where images come from.
        classes: ids of all its classes, rising.
        train: images that probes learn from.
        test: images that they are tested on.
        look: images of the test rows that factors are looked for in.
        low: the least x and y, (2,).
        span: how far x and y vary, (2,); 0 where they do not.
    """

    task: Task
    classes: Ints
    train: Sample
    test: Sample
    look: Sample
    low: Floats
    span: Floats

    @property
    def is_placed(self) -> bool:
        """Whether both x and y vary."""
        return bool((self.span > 0).all())

    def labels(self, sample: Sample) -> Tensor:
        """The classes of images, counted from 0 in this environment, (n,)."""
        return torch.from_numpy(np.searchsorted(self.classes, sample.labels)).to(sample.rows.device)

    def places(self, sample: Sample) -> Tensor:
        """x and y of images, from 0 to 1 as they vary in this environment; 0 where they do not, (n, 2)."""
        found = np.zeros((len(sample.rows), 2), np.float32)
        if sample.factors is not None and self.is_placed:
            found[:] = (np.stack(sample.factors[-2:], axis=1) - self.low) / self.span
        return torch.from_numpy(found).to(sample.rows.device)


class Environments:
    """The environments of a stream on a device, kept once they were asked for."""

    def __init__(self, stream: Any, images: int, tests: int, device: str) -> None:
        """Keep nothing yet.

        Args:
            images: to train probes on, at most, of an environment.
            tests: to test them on, at most.
        """
        self._stream, self._images, self._tests = stream, images, tests
        self._device = device
        self._kept: dict[int, Environment] = {}

    def some(self, tasks: list[int]) -> list[Environment]:
        """Those of some tasks; one without images to train or test on is left out."""
        for index in tasks:
            if index not in self._kept:
                self._kept[index] = self._make(self._stream[index])
        several = [self._kept[index] for index in tasks]
        return [one for one in several if len(one.train.rows) and len(one.test.rows)]

    def _make(self, task: Task) -> Environment:
        classes = np.unique(np.concatenate([task.train.labels, task.test.labels]))
        asked = ((task.train, self._images), (task.test, self._tests), (task.test, _LOOK))
        train, test, look = (
            _sample(task, split, most, lane, self._device)
            for (split, most), lane in zip(asked, _LANES, strict=True)
        )
        return Environment(task, classes, train, test, look, *_frame(task.train))


def _sample(task: Task, split: Split, most: int, lane: int, device: str) -> Sample:
    """Choose rows of a split, evenly spread, and shuffle them by the task's seed."""
    chosen = np.array(spread(len(split), most), np.int64)
    rows = chosen[permutation(task.seed, Purpose.PROBES, task.index, len(chosen), lane=lane)]
    factors = split.factors and split.factors.take(rows)
    placed = torch.from_numpy(rows).to(device)
    return Sample(split.on(device).images, placed, split.labels[rows], factors)


def _frame(split: Split) -> tuple[Floats, Floats]:
    """The least x and y of a split, and how far they vary."""
    if split.factors is None or not len(split):
        return np.zeros(2), np.zeros(2)
    places = np.stack(split.factors[-2:], axis=1).astype(np.float64)
    return places.min(0), np.ptp(places, axis=0)


def encode(learner: Encodes, images: Sample) -> tuple[Tensor, Tensor]:
    """Means and deviations of the codes of images, (n, N) each."""
    with torch.no_grad():
        parts = [learner.codes(part) for part in images.parts()]
    means, deviations = zip(*parts, strict=True)
    return torch.cat(means), torch.cat(deviations)
