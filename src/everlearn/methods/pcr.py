"""Proxy-based contrastive replay: PCR (Lin et al. 2023, arXiv 2304.04408) and HPCR (arXiv 2309.15038).

Replay with a softmax of cosines over the classes of the batch alone. HPCR also distils the stored features
and logits of replayed images. What differs is in docs/methods/pcr.md and hpcr.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from everlearn.core.settings import setting
from everlearn.core.validate import check_int, check_number
from everlearn.losses import proxy
from everlearn.memory import Buffer, Reservoir
from everlearn.nets.features import Features
from everlearn.nets.precision import eval_mode, forward_pass
from everlearn.stream import Task, TaskStream
from everlearn.training.captured_step import CapturedStep
from everlearn.training.optimizer_step import optimizer_step
from everlearn.training.train_settings import TrainSettings
from everlearn.training.trainer import Trainer


@dataclass(frozen=True)
class Settings:
    """Settings of PCR; HPCR turns the last three on."""

    train: TrainSettings = TrainSettings()
    buffer_size: int = setting(5000, "images kept")
    temperature: float = setting(0.09, "of the cosines, tau (authors' code: 0.09)")
    cosine_loss_scale: bool = setting(
        False, "scale the loss along a cosine over the steps of a task (HPCR)"
    )
    alpha: float = setting(0.0, "weight of the distance to stored logits (HPCR's code: 0.1)")
    beta: float = setting(0.0, "weight of the distance to stored similarities (HPCR's code: 0.5)")

    def __post_init__(self) -> None:
        """Check every number."""
        check_int(self.buffer_size, "buffer_size", 1, 10**9)
        check_number(self.temperature, "temperature", 1e-3, 1e3)
        check_number(self.alpha, "alpha", 0, 1e6)
        check_number(self.beta, "beta", 0, 1e6)

    @property
    def distils(self) -> bool:
        """Whether features and logits are stored beside images."""
        return bool(self.alpha or self.beta)


class PCR:
    """A classifier, the proxies in its head, and a buffer of images with stored outputs."""

    def __init__(self, stream: TaskStream, settings: Settings, device: str) -> None:
        """Start with random weights, which follow from the stream's seed, and an empty buffer."""
        if stream.online and settings.distils:
            raise ValueError(
                "alpha and beta need the images of a task again when it ends, which an online stream "
                "forbids; give alpha=0 and beta=0"
            )
        self.settings = settings
        self.device = device
        self.trainer = Trainer(stream, settings.train, device)
        self.batch_size = self.trainer.batch_size()
        net: Any = self.trainer.net
        self.features = Features(net)
        self.head = net.head
        self.width = net.width
        outputs = self.width + len(self.trainer.model.classes) if settings.distils else 0
        canvas = stream.canvas
        self.buffer = Buffer(settings.buffer_size, canvas.shape, canvas.bits, device, outputs)
        self.sampler = Reservoir(settings.buffer_size, stream.seed)
        self._step = CapturedStep(self._train_step, self.trainer.training_state)

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Train on the task and the buffer, then update the buffer with images of the task."""
        new = self.trainer.batch_size(task)
        replay = self.trainer.draw_replay(task, self.sampler.used, new)
        scales = self._loss_scales(self.trainer.count_steps(task))
        self.batch_size = new * (2 if len(replay) else 1)
        for step, (images, targets) in enumerate(self.trainer.training_batches(task)):
            yield self._step(images, targets, scales[step], *replay[step : step + 1])
        outputs = self._stored_outputs if self.settings.distils else None
        self.trainer.store(task, self.sampler, self.buffer, outputs)

    def _loss_scales(self, steps: int) -> Tensor:
        """Return the factor on the loss of each step, (steps,)."""
        scaled = self.settings.cosine_loss_scale
        scales = [proxy.loss_scale_at(step) if scaled else 1.0 for step in range(steps)]
        return torch.tensor(scales, device=self.device)

    def _stored_outputs(self, images: Tensor) -> Tensor:
        """Return what is stored beside images: features and logits, in one row each."""
        return torch.cat(self._outputs(images), 1)

    def _outputs(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Return features and logits in evaluation mode."""
        with eval_mode(self.features):
            features = forward_pass(self.features, images)
            return features, self._logits(features)

    def _logits(self, features: Tensor) -> Tensor:
        return proxy.cosines(features, self.head.weight) / self.settings.temperature

    def _train_step(
        self, images: Tensor, targets: Tensor, scale: Tensor, *replayed: Tensor
    ) -> Tensor:
        """PCR's loss over new and replayed images, and HPCR's two distances of the replayed ones."""
        images, targets = self.buffer.join(images, targets, *replayed)
        features = forward_pass(self.features, images)
        temperature = self.settings.temperature
        loss = scale * proxy.proxy_loss(features, self.head.weight, targets, temperature)
        for rows in replayed:
            stored = self.buffer.logits(rows)
            loss = loss + self._distillation(features[-len(rows) :], targets, stored)
        return optimizer_step(self.trainer.optimizer, loss)

    def _distillation(self, features: Tensor, targets: Tensor, stored: Tensor) -> Tensor:
        """Return the weighted distances of logits and similarities from the stored ones."""
        settings = self.settings
        total = torch.zeros((), device=features.device)
        if settings.alpha:
            logits = self._logits(features)
            distance = proxy.proxy_distillation(logits, stored[:, self.width :], targets)
            total = total + settings.alpha * distance
        if settings.beta and len(features) > 1:  # a single image has no others to be similar to
            stored_features = stored[:, : self.width]
            distance = proxy.sample_distillation(features, stored_features, settings.temperature)
            total = total + settings.beta * distance
        return total

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Return the class with the nearest proxy, by cosine, for each image."""
        return self.trainer.model.classify(self._outputs(images)[1], among)

    def state(self) -> dict[str, Any]:
        """Return the trainer's state, the buffer and the state of its sampler."""
        return {
            **self.trainer.state(),
            "memory": self.buffer.state(),
            "sampler": self.sampler.state(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.trainer.load_state(state)
        self.buffer.load_state(state["memory"])
        self.sampler.load_state(state["sampler"])
