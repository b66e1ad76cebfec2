"""Pre-training of a small transformer on another domain, for L2P-lite: MNIST and Fashion-MNIST, 20 classes.

The weights follow from the seed and the number of steps alone, on one kind of machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from everlearn.exam.costs import gpu_of
from everlearn.nets import fast
from everlearn.nets.head import Head
from everlearn.nets.seeded import seeded
from everlearn.nets.vit import CONFIGS, ViT
from everlearn.nets.vit.weights import save_vit
from everlearn.philox import Purpose, uniform
from everlearn.pretraining.pace import Moment, Score, take_steps
from everlearn.pretraining.settings import Settings
from everlearn.provenance import provenance
from everlearn.stream import Task
from everlearn.stream.arrays import ArrayStream
from everlearn.warp import normalise, similarities

__all__ = ["Moment", "Pretraining", "Score", "Settings"]

MAKER = "everlearn pretrain"
DATA = ("mnist", "fashion-mnist")
CLASSES = 10  # of each
_SMALLEST = 0.5  # of the size of an image, when it is moved
_AT_ONCE = 64
_FOREVER = 10**6


class Pretraining:
    """A transformer with a head that learns to tell 20 classes."""

    def __init__(self, settings: Settings, data: str | Path | None, device: str) -> None:
        """Read the data and start with random weights.

        Args:
            data: folder of the data sets; EVERLEARN_DATA by default.
        """
        self.settings, self.device = settings, device
        config = CONFIGS[settings.net]
        self.tasks = [_all_of(name, data, settings.seed, config.size) for name in DATA]
        with seeded(settings.seed):
            self.vit = ViT(config)
            net = nn.Sequential(self.vit, Head(config.width, CLASSES * len(DATA)))
        self.net = fast.place(net, device)
        self.optimizer = fast.adam(self.net.parameters(), settings.rate)
        changed = fast.changed(self.net, self.optimizer)
        self._step = fast.Step(self._learn_batch, changed)
        self.done = 0

    def learn(self) -> Iterator[Moment]:
        """Go through all steps."""
        self.net.train()
        for now in take_steps(self.settings, self._batches(), self.optimizer, self._step):
            self.done = now.step
            yield now

    def _batches(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Images, labels and moves: half of a batch is digits, half is clothes."""
        half = self.settings.batch_size // len(DATA)
        parts = [
            task.batches(half, _FOREVER, self.device, drop_last=len(task.train) >= half)
            for task in self.tasks
        ]
        moves = self._moves(half * len(DATA))
        for several in zip(*parts, strict=True):
            images = torch.cat([batch.images for batch in several])
            labels = torch.cat([b.labels + n * CLASSES for n, b in enumerate(several)])
            yield images, labels, next(moves)[: len(images)]

    def _moves(self, size: int) -> Iterator[Tensor]:
        for first in count(0, _AT_ONCE):
            several = draw_moves(self.settings.seed, range(first, first + _AT_ONCE), size)
            yield from torch.from_numpy(several).to(self.device)

    def _learn_batch(self, images: Tensor, labels: Tensor, moves: Tensor) -> Tensor:
        logits = fast.forward(self.net, normalise(images, moves))
        return fast.descend(self.optimizer, cross_entropy(logits, labels))

    def test(self) -> Score:
        """Name official test images, as many of each data set, evenly spread."""
        right = torch.zeros((), dtype=torch.int64, device=self.device)
        total = 0
        for number, task in enumerate(self.tasks):
            most = min(len(task.test), self.settings.test_images // len(DATA))
            rows = np.linspace(0, len(task.test) - 1, most).astype(np.int64)
            for start in range(0, most, self.settings.batch_size):
                batch = task.test.batch(rows[start : start + self.settings.batch_size], self.device)
                right += (self._name(batch.images) == batch.labels + number * CLASSES).sum()
            total += most
        return Score(int(right), total)

    def _name(self, images: Tensor) -> Tensor:
        with fast.evaluating(self.net):
            return fast.forward(self.net, images).argmax(1)

    def save(self, path: Path, score: Score) -> Path:
        """Write the transformer without its head, and what it comes from."""
        about: dict[str, Any] = {
            "maker": MAKER,
            "data": {name: len(task.train) for name, task in zip(DATA, self.tasks, strict=True)},
            "settings": asdict(self.settings),
            "steps": self.done,
            "test": score._asdict(),
            "provenance": provenance(gpu_of(self.device)),
        }
        return save_vit(path, self.vit, about)


def _all_of(name: str, data: str | Path | None, seed: int, size: int) -> Task:
    """A whole data set as one task."""
    stream = ArrayStream(
        name, data, seed, 1, CLASSES, class_order="natural", val_share=0.0, size=size, channels=1
    )
    return stream[0]


def draw_moves(seed: int, steps: range, size: int) -> NDArray[np.float32]:
    """Maps (steps, size, 2, 3) under which an image gets smaller and lies anywhere, still whole."""
    drawn = uniform(seed, Purpose.JITTER, 0, np.array(steps), count=3 * size)
    number = drawn.reshape(len(steps), size, 3)
    scale = _SMALLEST + (1.0 - _SMALLEST) * number[..., 0]
    place = (2.0 * number[..., 1:] - 1.0) * (1.0 - scale[..., None])
    return similarities(1.0 / scale, np.zeros_like(scale), -place / scale[..., None])
