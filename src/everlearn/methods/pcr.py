"""Proxy-based contrastive replay: PCR (Lin et al. 2023, arXiv 2304.04408) and HPCR (arXiv 2309.15038).

Replay with a softmax over the classes of the batch alone, by cosines; HPCR also keeps what the net said
of remembered images. What differs is in docs/methods/pcr.md and hpcr.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from everlearn.border import check_number, check_whole
from everlearn.memory import Buffer, Reservoir
from everlearn.nets import fast, proxy
from everlearn.nets.both import Features
from everlearn.settings import setting
from everlearn.stream import Task
from everlearn.student import Student, Study


@dataclass(frozen=True)
class Settings:
    """What PCR can be told; HPCR turns its wave and its two distillations on."""

    study: Study = Study()
    memory: int = setting(5000, "images kept")
    tau: float = setting(0.09, "temperature of the cosines (authors' code: 0.09)")
    wave: bool = setting(False, "weigh the loss by a wave over the steps of a task (HPCR)")
    alpha: float = setting(0.0, "of the distance to old logits (HPCR, authors' code: 0.1)")
    beta: float = setting(0.0, "of the distance to old likenesses (HPCR, authors' code: 0.5)")

    def __post_init__(self) -> None:
        """Check every number."""
        check_whole(self.memory, "memory", 1, 10**9)
        check_number(self.tau, "tau", 1e-3, 1e3)
        check_number(self.alpha, "alpha", 0, 1e6)
        check_number(self.beta, "beta", 0, 1e6)


class PCR:
    """A net whose head holds proxies, and a buffer of images with what the net said of them."""

    def __init__(self, stream: Any, settings: Settings, device: str) -> None:
        """Start with random weights and an empty buffer."""
        if stream.online and (settings.alpha or settings.beta):
            raise ValueError(
                "alpha and beta need another look at the images of a task when it ends, which an "
                "online stream forbids; give alpha=0 and beta=0"
            )
        self.settings, self.device = settings, device
        self.student, canvas = Student(stream, settings.study, device), stream.canvas
        self.batch_size = self.student.batch_size()
        net: Any = self.student.net
        self.seeing, self.head, self.width = Features(net), net.head, net.width
        said = self.width + len(self.student.model.classes)
        said = said if settings.alpha or settings.beta else 0
        self.buffer = Buffer(settings.memory, canvas.shape, canvas.bits, device, said)
        self.choice = Reservoir(settings.memory, stream.seed)
        self._step = fast.Step(self._learn_batch, self.student.changed)

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Go through the task beside the buffer; then let the buffer choose from the task."""
        new, steps = self.student.batch_size(task), self.student.count_steps(task)
        recalled, waves = self.student.draw(task, self.choice.used, new), self._waves(steps)
        self.batch_size = new * (2 if len(recalled) else 1)
        for step, (images, units) in enumerate(self.student.lessons(task)):
            yield self._step(images, units, waves[step], *recalled[step : step + 1])
        says = self.settings.alpha or self.settings.beta
        self.student.keep(task, self.choice, self.buffer, self._remark if says else None)

    def _waves(self, steps: int) -> Tensor:
        """What the loss of each step is multiplied by."""
        heights = [proxy.tau_at(step) if self.settings.wave else 1.0 for step in range(steps)]
        return torch.tensor(heights, device=self.device)

    def _remark(self, images: Tensor) -> Tensor:
        """What is kept beside images, in one row each."""
        return torch.cat(self._say(images), 1)

    def _say(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Features and logits in evaluation."""
        with fast.evaluating(self.seeing):
            features = fast.forward(self.seeing, images)
            return features, proxy.cosines(features, self.head.weight) / self.settings.tau

    def _learn_batch(self, images: Tensor, units: Tensor, wave: Tensor, *old: Tensor) -> Tensor:
        """PCR's loss over new and old images, and HPCR's two distances of the old ones."""
        images, units = self.buffer.join(images, units, *old)
        features = fast.forward(self.seeing, images)
        loss = wave * proxy.proxy_loss(features, self.head.weight, units, self.settings.tau)
        for rows in old:
            loss = loss + self._distances(features[-len(rows) :], units, self.buffer.logits(rows))
        return fast.descend(self.student.optimizer, loss)

    def _distances(self, features: Tensor, units: Tensor, said: Tensor) -> Tensor:
        """How far logits and likenesses of remembered images are from what was said of them."""
        settings, total = self.settings, torch.zeros((), device=features.device)
        if settings.alpha:
            logits = proxy.cosines(features, self.head.weight) / settings.tau
            far = proxy.proxy_distillation(logits, said[:, self.width :], units)
            total = total + settings.alpha * far
        if settings.beta and len(features) > 1:  # a single image has no others to be like
            far = proxy.sample_distillation(features, said[:, : self.width], settings.tau)
            total = total + settings.beta * far
        return total

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Name the class of the nearest proxy, by cosine."""
        return self.student.model.choose(self._say(images)[1], among)

    def state(self) -> dict[str, Any]:
        """What the student has learned, what is kept and how many came."""
        return {
            **self.student.state(),
            "memory": self.buffer.state(),
            "choice": self.choice.state(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.student.load_state(state)
        self.buffer.load_state(state["memory"])
        self.choice.load_state(state["choice"])
