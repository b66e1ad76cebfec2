"""iCaRL (Rebuffi et al. 2017, arXiv 1611.07725): herded exemplars, predictions by their nearest mean.

The net has one sigmoid per class. New classes learn their labels, old ones the outputs of the net before
the task. What differs is in docs/methods/icarl.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, normalize, one_hot

from everlearn.core.settings import setting
from everlearn.core.validate import check_int
from everlearn.memory import Buffer
from everlearn.memory.herded_exemplars import HerdedExemplars
from everlearn.nets.nearest_mean import extract_features, nearest_class
from everlearn.nets.precision import forward_pass
from everlearn.stream import Task, TaskStream
from everlearn.training.captured_step import CapturedStep
from everlearn.training.optimizer_step import optimizer_step
from everlearn.training.train_settings import TrainSettings
from everlearn.training.trainer import Trainer


@dataclass(frozen=True)
class Settings:
    """Settings of iCaRL."""

    train: TrainSettings = TrainSettings()
    buffer_size: int = setting(2000, "exemplars of all classes together (paper, section 4: 2,000)")
    replay_batch_size: int | None = setting(None, "exemplars per step; none: as many as new images")

    def __post_init__(self) -> None:
        """Check every setting."""
        check_int(self.buffer_size, "buffer_size", 1, 10**9)
        if self.replay_batch_size is not None:
            check_int(self.replay_batch_size, "replay_batch_size", 1, 10**6)


class ICaRL:
    """A classifier, a copy of it from before the current task (the teacher) and exemplars."""

    def __init__(self, stream: TaskStream, settings: Settings, device: str) -> None:
        """Start with random weights, which follow from the stream's seed, and no exemplar."""
        if stream.online:
            raise ValueError(
                "icarl chooses exemplars among images that it has learned from, and an online stream "
                "shows them once; use er or gdumb there"
            )
        self.settings = settings
        self.device = device
        self.trainer = Trainer(stream, settings.train, device)
        self.batch_size = self.trainer.batch_size()
        canvas = stream.canvas
        model = self.trainer.model
        self.buffer = Buffer(settings.buffer_size, canvas.shape, canvas.bits, device)
        self.exemplars = HerdedExemplars(self.buffer, len(model.classes), stream.seed, device)
        self.teacher = deepcopy(model.net).requires_grad_(False).eval()
        self.old_classes = torch.zeros_like(model.seen)
        include_unseen = settings.train.include_unseen
        self._in_loss = torch.ones_like(model.seen) if include_unseen else model.seen
        self._means: tuple[Tensor, Tensor] | None = None
        self._step = CapturedStep(self._train_step, self.trainer.training_state)

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Train on the task and the exemplars, then choose exemplars of its classes."""
        new = self.trainer.batch_size(task)
        replay = self.trainer.draw_replay(
            task, self.exemplars.used, self.settings.replay_batch_size or new
        )
        self.batch_size = new + (replay.shape[1] if len(replay) else 0)
        self._set_old_classes(task)
        for step, (images, targets) in enumerate(self.trainer.training_batches(task)):
            loss = self._step(images, targets, *replay[step : step + 1])
            self._means = None  # of the net before this step
            yield loss
        if len(task.train):
            first = self.trainer.model.classes.start
            self.exemplars.update(task.train, task.train.labels - first, self._features)
        self.teacher.load_state_dict(self.trainer.net.state_dict())
        self._means = None

    def _set_old_classes(self, task: Task) -> None:
        """Mark the classes seen before that are not in this task; a class that returns is new again."""
        model = self.trainer.model
        self.old_classes.copy_(model.seen)
        labels = torch.tensor(task.classes, dtype=torch.int64, device=self.device)
        self.old_classes[model.targets(labels)] = False

    def _train_step(self, images: Tensor, targets: Tensor, *replayed: Tensor) -> Tensor:
        """Binary cross-entropy (algorithm 3): summed over classes, averaged over images and exemplars."""
        images, targets = self.buffer.join(images, targets, *replayed)
        logits = self.trainer.logits(images)
        sigmoid_targets = one_hot(targets, len(self.old_classes)).double()
        if replayed:
            with torch.no_grad():
                teacher = forward_pass(self.teacher, images).sigmoid()
            sigmoid_targets = torch.where(self.old_classes, teacher, sigmoid_targets)
        losses = binary_cross_entropy_with_logits(logits, sigmoid_targets, reduction="none")
        loss = (losses * self._in_loss).sum(1).mean().float()
        return optimizer_step(self.trainer.optimizer, loss)

    def _features(self, images: Tensor) -> Tensor:
        """Return features of length 1."""
        return normalize(extract_features(self.trainer.net, images), dim=1)

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Return the class with the nearest mean of exemplars, by the features of the current net."""
        if not len(self.exemplars.used):
            return torch.full((len(images),), -1, device=self.device)
        if self._means is None:
            self._means = self.exemplars.means(self._features)
        classes = self.trainer.model.classes
        return nearest_class(self._features(images), *self._means, classes, among)

    def state(self) -> dict[str, Any]:
        """Return the trainer's state and the exemplars; after a task the teacher equals its net."""
        return {
            **self.trainer.state(),
            "memory": self.buffer.state(),
            "sampler": self.exemplars.state(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.trainer.load_state(state)
        self.buffer.load_state(state["memory"])
        self.exemplars.load_state(state["sampler"])
        self.teacher.load_state_dict(self.trainer.net.state_dict())
        self._means = None
