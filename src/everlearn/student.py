"""A classifier with its optimiser, at its pace: what methods hold that train one net."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from everlearn.border import check_number
from everlearn.learner import Pace, all_classes, check_passes, count_steps, lessons
from everlearn.memory import Balanced, Buffer, Reservoir, draw_rows
from everlearn.memory.reservoir import Ints
from everlearn.nets import build_net, fast, fisher
from everlearn.nets.classifier import Classifier
from everlearn.philox import Purpose, permutation
from everlearn.settings import setting
from everlearn.stream import Task

OPTIMIZERS = ("adam", "sgd")
Choice = Balanced | Reservoir
Say = Callable[[Tensor], Tensor]
_AT_ONCE = 4096


@dataclass(frozen=True)
class Study:
    """How a classifier is trained.

    Adam 1e-3, batches of 256 and 5 epochs are the DCL paper's; why the rest differs from the paper's
    code is in docs/decisions/0012-learning-every-task.md.
    """

    pace: Pace = Pace(final_rate=1e-5)
    net: str = setting("resnet18", "which net tells the class")
    optimizer: str = setting("adam", "adam or sgd")
    momentum: float = setting(0.9, "of sgd")
    unmet: bool = setting(False, "keep classes not met yet in the softmax, as the DCL paper's code")
    fresh: bool = setting(True, "start the optimiser afresh with every task")

    def __post_init__(self) -> None:
        """Check the optimiser."""
        if self.optimizer not in OPTIMIZERS:
            known = ", ".join(OPTIMIZERS)
            raise ValueError(f"unknown optimizer {self.optimizer!r}; known: {known}")
        check_number(self.momentum, "momentum", 0, 1)


class Student:
    """One net with one output for each class of the stream.

    Attributes:
        changed: every tensor that a training step changes.
    """

    def __init__(self, stream: Any, study: Study, device: str) -> None:
        """Start with random weights, which follow from the stream's seed."""
        check_passes(stream, study.pace)
        classes, canvas = all_classes(stream), stream.canvas
        self.study, self.device, self._seed = study, device, stream.seed
        net = build_net(study.net, canvas.channels, len(classes), canvas.size, stream.seed)
        self.model = Classifier(net, classes, device)
        self.net = self.model.net
        self.weights = list(self.net.parameters())
        rate = study.pace.rate
        self.optimizer = (
            fast.adam(self.weights, rate)
            if study.optimizer == "adam"
            else fast.sgd(self.weights, rate, study.momentum)
        )
        self.changed = fast.changed(self.net, self.optimizer)

    @property
    def has_met(self) -> bool:
        """Whether there was a class yet; this waits for a GPU."""
        return bool(self.model.met.any())

    def batch_size(self, task: Task | None = None) -> int:
        """How many images of a task a step takes."""
        whole = self.study.pace.batch_size
        return whole if task is None else min(whole, len(task.train))

    def count_steps(self, task: Task) -> int:
        """How many steps a task takes."""
        return count_steps(task, self.study.pace)

    def lessons(self, task: Task) -> Iterator[tuple[Tensor, Tensor]]:
        """Meet the classes of a task; then give its images and units, batch by batch."""
        self.begin(task)
        for batch, _, rate in lessons(task, self.study.pace, self.device):
            fast.set_rate(self.optimizer, rate)
            yield batch.images, self.model.unit(batch.labels)

    def begin(self, task: Task) -> None:
        """Be ready to train on a task."""
        self.model.meet(task.classes)
        if self.study.fresh:
            fast.forget(self.optimizer)
        self.net.train()

    def logits(self, images: Tensor) -> Tensor:
        """(B, classes)."""
        return self.model.logits(images)

    def loss(self, logits: Tensor, units: Tensor) -> Tensor:
        """Mean cross-entropy."""
        return self.model.loss(logits, units, self.study.unmet)

    def descend(self, images: Tensor, units: Tensor) -> Tensor:
        """One step down the cross-entropy; return it."""
        return fast.descend(self.optimizer, self.loss(self.logits(images), units))

    def slopes(self, images: Tensor, units: Tensor) -> tuple[Tensor, ...]:
        """The gradient of the cross-entropy, one tensor a weight; nothing of the net changes."""
        with fast.keeping_moments(self.net):
            return torch.autograd.grad(self.loss(self.logits(images), units), self.weights)

    def fisher(self, task: Task, samples: int, true: bool = False) -> list[Tensor]:
        """The Fisher information of some images of a task, by labels drawn from the net or by true ones."""
        batch, chance = fisher.draw(task, samples, self.device)
        among = None if self.study.unmet else self.model.met
        if true:
            return fisher.empirical(self.net, batch.images, self.model.unit(batch.labels), among)
        return fisher.diagonal(self.net, batch.images, chance, among)

    def draw(self, task: Task, used: Ints, count: int) -> Tensor:
        """Which of the used slots of a buffer each step sees, (steps, count); nothing without any."""
        rows = draw_rows(self._seed, task.index, len(used), self.count_steps(task), count)
        return torch.from_numpy(used[rows]).to(self.device)

    def keep(self, task: Task, choice: Choice, buffer: Buffer, say: Say | None = None) -> None:
        """Let a buffer take in what a choice admits of a task, and what is said of it, if anything."""
        items, slots = choice.admit(task.index, task.train.labels)
        for start in range(0, len(items), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            kept = task.train.batch(items[part], self.device)
            buffer.put(slots[part], kept.images, self.model.unit(kept.labels))
            if say is not None:
                rows = torch.from_numpy(slots[part]).to(self.device)
                buffer.write_logits(rows, say(kept.images))

    def append(self, task: Task, count: int, buffer: Buffer) -> int:
        """Let a buffer take in up to so many random images of a task, behind the others; say how many."""
        chosen = permutation(self._seed, Purpose.MEMORY, task.index, len(task.train))[:count]
        kept = task.train.batch(chosen, self.device)
        slots = buffer.filled + np.arange(len(chosen))
        buffer.put(slots, kept.images, self.model.unit(kept.labels))
        return len(chosen)

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Name the class with the largest logit."""
        return self.model.predict(images, among)

    def state(self) -> dict[str, Any]:
        """Weights, classes met and, where it is used, what the optimiser keeps."""
        kept = [] if self.study.fresh else fast.moments(self.optimizer)
        return {**self.model.state(), "optimizer": kept}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.model.load_state(state)
        fast.load_moments(self.optimizer, state["optimizer"])
