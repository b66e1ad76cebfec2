"""Experience replay (Chaudhry et al. 2019, arXiv 1902.10486): train on new images and a batch from memory.

As in the DCL paper, the buffer is updated after each task. What differs is in docs/methods/er.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from everlearn.core.settings import setting
from everlearn.core.validate import check_int, check_number
from everlearn.memory import Buffer, ClassBalanced, Reservoir
from everlearn.nets.precision import eval_mode, forward_pass
from everlearn.stream import Task, TaskStream
from everlearn.training.captured_step import CapturedStep
from everlearn.training.optimizer_step import optimizer_step
from everlearn.training.train_settings import TrainSettings
from everlearn.training.trainer import Trainer
from everlearn.training.weight_average import WeightAverage


@dataclass(frozen=True)
class Settings:
    """Settings of experience replay."""

    train: TrainSettings = TrainSettings()
    buffer_size: int = setting(5000, "images kept (DCL paper, section 5.2: 1,000 to 20,000)")
    replay_batch_size: int | None = setting(None, "replayed images per step; none: as many as new")
    balanced: bool = setting(False, "keep equally many images of each class; else a reservoir")
    separate_means: bool = setting(False, "sum the means over new and replayed; else one mean")
    weight_averaging: float = setting(
        0.0, "predict with a moving average of the weights after each task, of at most this decay"
    )

    def __post_init__(self) -> None:
        """Check every setting."""
        check_int(self.buffer_size, "buffer_size", 1, 10**9)
        if self.replay_batch_size is not None:
            check_int(self.replay_batch_size, "replay_batch_size", 1, 10**6)
        check_number(self.weight_averaging, "weight_averaging", 0, 0.9999)


class ER:
    """A classifier with a buffer of old images."""

    def __init__(self, stream: TaskStream, settings: Settings, device: str) -> None:
        """Start with random weights, which follow from the stream's seed, and an empty buffer."""
        self.settings = settings
        self.device = device
        self.trainer = Trainer(stream, settings.train, device)
        self.batch_size = self.trainer.batch_size()
        size = settings.buffer_size
        self.buffer = Buffer(size, stream.canvas.shape, stream.canvas.bits, device)
        self.sampler = (ClassBalanced if settings.balanced else Reservoir)(size, stream.seed)
        self.average = WeightAverage(self.trainer.net, settings.weight_averaging)
        self._step = CapturedStep(self._train_step, self.trainer.training_state)

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Train on the task and the buffer, then update the buffer with images of the task."""
        known = self.trainer.model.seen.clone()
        new = self.trainer.batch_size(task)
        count = self.settings.replay_batch_size or new
        replay = self.trainer.draw_replay(task, self.sampler.used, count)
        self.batch_size = new + (count if len(replay) else 0)
        for step, (images, targets) in enumerate(self.trainer.training_batches(task)):
            yield self._step(images, targets, *replay[step : step + 1])
        self.trainer.store(task, self.sampler, self.buffer)
        self._update_average(known)

    @torch.no_grad()
    def _update_average(self, known: Tensor) -> None:
        """Average the weights; the head's rows of classes that were not known before are copied."""
        self.average.update()
        if not self.settings.weight_averaging:
            return
        new = self.trainer.model.seen & ~known
        heads: Any = self.average.net.head, self.trainer.net.head
        for averaged, trained in zip(*(head.parameters() for head in heads), strict=True):
            averaged[new] = trained[new]

    def _train_step(self, images: Tensor, targets: Tensor, *replayed: Tensor) -> Tensor:
        """Take one step on new images and those of replayed rows, if any."""
        new = len(targets)
        images, targets = self.buffer.join(images, targets, *replayed)
        logits = self.trainer.logits(images)
        if replayed and self.settings.separate_means:
            loss = self.trainer.loss(logits[:new], targets[:new])
            loss = loss + self.trainer.loss(logits[new:], targets[new:])
        else:
            loss = self.trainer.loss(logits, targets)
        return optimizer_step(self.trainer.optimizer, loss)

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Return the seen class with the largest logit, of the averaged net if there is one."""
        net = self.average.net
        with eval_mode(net):
            return self.trainer.model.classify(forward_pass(net, images), among)

    def state(self) -> dict[str, Any]:
        """Return the trainer's state, the buffer, the state of its sampler and averaged weights, if any."""
        stored = {"memory": self.buffer.state(), "sampler": self.sampler.state()}
        average = self.average.state() if self.settings.weight_averaging else {}
        return self.trainer.state() | stored | average

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.trainer.load_state(state)
        self.buffer.load_state(state["memory"])
        self.sampler.load_state(state["sampler"])
        if self.settings.weight_averaging:
            self.average.load_state(state)
