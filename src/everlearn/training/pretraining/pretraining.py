"""Pre-training of a small transformer for L2P-lite on another domain: MNIST and Fashion-MNIST, 20 classes.

On one type of machine, the seed and the number of steps determine the weights.
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

from everlearn.core.provenance import provenance
from everlearn.core.random import Purpose, uniform
from everlearn.nets.layers.head import Head
from everlearn.nets.precision import eval_mode, forward_pass, to_device
from everlearn.nets.seeded import seeded
from everlearn.nets.vit import CONFIGS, ViT
from everlearn.nets.vit.weights import save_vit
from everlearn.render.affine import similarity_maps, transform_images
from everlearn.stream import Task
from everlearn.stream.datasets import ArrayStream
from everlearn.training.adam import Adam
from everlearn.training.captured_step import CapturedStep
from everlearn.training.device import gpu_name
from everlearn.training.optimizer_step import optimizer_step, training_state
from everlearn.training.pretraining.schedule import Score, TrainingProgress, take_steps
from everlearn.training.pretraining.settings import Settings

MAKER = "everlearn pretrain"
DATA = ("mnist", "fashion-mnist")
CLASSES = 10  # of each data set
_MIN_SCALE = 0.5  # of a transformed image
_CHUNK = 64  # steps whose maps are drawn at once
_ENDLESS_EPOCHS = 10**6


class Pretraining:
    """Trains a transformer with a head to classify 20 classes."""

    def __init__(self, settings: Settings, data: str | Path | None, device: str) -> None:
        """Read the data and start with random weights.

        Args:
            data: folder of the data sets; EVERLEARN_DATA by default.
        """
        self.settings = settings
        self.device = device
        config = CONFIGS[settings.net]
        self.tasks = [_dataset_task(name, data, settings.seed, config.size) for name in DATA]
        with seeded(settings.seed):
            self.vit = ViT(config)
            net = nn.Sequential(self.vit, Head(config.width, CLASSES * len(DATA)))
        self.net = to_device(net, device)
        self.optimizer = Adam(self.net.parameters(), settings.learning_rate)
        self._step = CapturedStep(self._train_step, training_state(self.net, self.optimizer))
        self.done = 0

    def learn(self) -> Iterator[TrainingProgress]:
        """Train; yield the progress after every step."""
        self.net.train()
        for progress in take_steps(self.settings, self._batches(), self.optimizer, self._step):
            self.done = progress.step
            yield progress

    def _batches(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Images, labels and maps: half of a batch is digits, half is clothes."""
        half = self.settings.batch_size // len(DATA)
        per_dataset = [
            task.batches(half, _ENDLESS_EPOCHS, self.device, drop_last=len(task.train) >= half)
            for task in self.tasks
        ]
        maps = self._maps(half * len(DATA))
        for batches in zip(*per_dataset, strict=True):
            images = torch.cat([batch.images for batch in batches])
            labels = torch.cat([b.labels + n * CLASSES for n, b in enumerate(batches)])
            yield images, labels, next(maps)[: len(images)]

    def _maps(self, size: int) -> Iterator[Tensor]:
        for first in count(0, _CHUNK):
            maps = draw_maps(self.settings.seed, range(first, first + _CHUNK), size)
            yield from torch.from_numpy(maps).to(self.device)

    def _train_step(self, images: Tensor, labels: Tensor, maps: Tensor) -> Tensor:
        logits = forward_pass(self.net, transform_images(images, maps))
        return optimizer_step(self.optimizer, cross_entropy(logits, labels))

    def test(self) -> Score:
        """Classify official test images, evenly spaced and equally many from each data set."""
        correct = torch.zeros((), dtype=torch.int64, device=self.device)
        total = 0
        for number, task in enumerate(self.tasks):
            images = min(len(task.test), self.settings.test_images // len(DATA))
            rows = np.linspace(0, len(task.test) - 1, images).astype(np.int64)
            for start in range(0, images, self.settings.batch_size):
                batch = task.test.batch(rows[start : start + self.settings.batch_size], self.device)
                targets = batch.labels + number * CLASSES
                correct += (self._predict(batch.images) == targets).sum()
            total += images
        return Score(int(correct), total)

    def _predict(self, images: Tensor) -> Tensor:
        with eval_mode(self.net):
            return forward_pass(self.net, images).argmax(1)

    def save(self, path: Path, score: Score) -> Path:
        """Write the transformer without its head, and its provenance."""
        about: dict[str, Any] = {
            "maker": MAKER,
            "data": {name: len(task.train) for name, task in zip(DATA, self.tasks, strict=True)},
            "settings": asdict(self.settings),
            "steps": self.done,
            "test": score._asdict(),
            "provenance": provenance(gpu_name(self.device)),
        }
        return save_vit(path, self.vit, about)


def _dataset_task(name: str, data: str | Path | None, seed: int, size: int) -> Task:
    """A complete data set as one task."""
    stream = ArrayStream(
        name, data, seed, 1, CLASSES, class_order="natural", val_share=0.0, size=size, channels=1
    )
    return stream[0]


def draw_maps(seed: int, steps: range, size: int) -> NDArray[np.float32]:
    """Draw maps (steps, size, 2, 3) that shrink an image and shift it within the canvas."""
    drawn = uniform(seed, Purpose.JITTER, 0, np.array(steps), count=3 * size)
    uniforms = drawn.reshape(len(steps), size, 3)
    scale = _MIN_SCALE + (1.0 - _MIN_SCALE) * uniforms[..., 0]
    shift = (2.0 * uniforms[..., 1:] - 1.0) * (1.0 - scale[..., None])
    return similarity_maps(1.0 / scale, np.zeros_like(scale), -shift / scale[..., None])
