"""A classifier with its optimiser and schedule, shared by the methods that train one net."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from everlearn.memory import Buffer, ClassBalanced, Reservoir, draw_replay_rows
from everlearn.memory.reservoir import Ints
from everlearn.nets import build_classifier
from everlearn.nets.classifier import Classifier
from everlearn.stream import Task, TaskStream
from everlearn.training.optimizer_step import (
    load_optimizer_state,
    optimizer_state,
    optimizer_step,
    reset_optimizer,
    set_learning_rate,
    training_state,
)
from everlearn.training.schedule import count_steps, training_batches
from everlearn.training.stream_checks import check_epochs, finite_class_ids
from everlearn.training.train_settings import TrainSettings

Sampler = ClassBalanced | Reservoir
Outputs = Callable[[Tensor], Tensor]
_CHUNK = 4096  # images that are stored at once


class Trainer:
    """A net with one output per class of the stream, and its optimiser.

    Attributes:
        training_state: every tensor that a training step changes.
    """

    def __init__(self, stream: TaskStream, settings: TrainSettings, device: str) -> None:
        """Start with random weights, determined by the stream's seed."""
        check_epochs(stream, settings.schedule)
        classes = finite_class_ids(stream)
        canvas = stream.canvas
        self.settings = settings
        self.device = device
        self.seed = stream.seed
        net = build_classifier(
            settings.net, canvas.channels, len(classes), canvas.size, stream.seed
        )
        self.model = Classifier(net, classes, device)
        self.net = self.model.net
        self.weights = list(self.net.parameters())
        self.optimizer = settings.build_optimizer(self.weights)
        self.training_state = training_state(self.net, self.optimizer)

    def batch_size(self, task: Task | None = None) -> int:
        """The number of images per step; a small task may have fewer than a full batch."""
        full = self.settings.schedule.batch_size
        return full if task is None else min(full, len(task.train))

    def count_steps(self, task: Task) -> int:
        """The number of training steps of a task."""
        return count_steps(task, self.settings.schedule)

    def training_batches(self, task: Task) -> Iterator[tuple[Tensor, Tensor]]:
        """Begin a task; then yield its images and targets, batch by batch, and set the learning rate."""
        self.begin_task(task)
        for batch, _, learning_rate in training_batches(task, self.settings.schedule, self.device):
            set_learning_rate(self.optimizer, learning_rate)
            yield batch.images, self.model.targets(batch.labels)

    def begin_task(self, task: Task) -> None:
        """Add the classes of a task, reset the optimiser if so set, and switch to training mode."""
        self.model.add_classes(task.classes)
        if self.settings.reset_optimizer:
            reset_optimizer(self.optimizer)
        self.net.train()

    def logits(self, images: Tensor) -> Tensor:
        """(B, classes), float64."""
        return self.model.logits(images)

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Mean cross-entropy."""
        return self.model.loss(logits, targets, self.settings.include_unseen)

    def train_step(self, images: Tensor, targets: Tensor) -> Tensor:
        """Take one optimiser step on the cross-entropy, and return it."""
        return optimizer_step(self.optimizer, self.loss(self.logits(images), targets))

    def draw_replay(self, task: Task, used: Ints, count: int) -> Tensor:
        """Draw the slots of a buffer that each step replays, (steps, count); (steps, 0) if none is used."""
        rows = draw_replay_rows(self.seed, task.index, len(used), self.count_steps(task), count)
        return torch.from_numpy(used[rows]).to(self.device)

    def store(
        self, task: Task, sampler: Sampler, buffer: Buffer, outputs: Outputs | None = None
    ) -> None:
        """Store the images of a task that a sampler selects and, if given, the outputs of a net on them."""
        items, slots = sampler.insert(task.index, task.train.labels)
        for start in range(0, len(items), _CHUNK):
            chunk = slice(start, start + _CHUNK)
            stored = task.train.batch(items[chunk], self.device)
            buffer.put(slots[chunk], stored.images, self.model.targets(stored.labels))
            if outputs is not None:
                rows = torch.from_numpy(slots[chunk]).to(self.device)
                buffer.write_logits(rows, outputs(stored.images))

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Predict the seen class with the largest logit."""
        return self.model.predict(images, among)

    def state(self) -> dict[str, Any]:
        """The weights, the seen classes and, unless it is reset, the optimiser's state."""
        optimizer = [] if self.settings.reset_optimizer else optimizer_state(self.optimizer)
        return {**self.model.state(), "optimizer": optimizer}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore a state."""
        self.model.load_state(state)
        load_optimizer_state(self.optimizer, state["optimizer"])
