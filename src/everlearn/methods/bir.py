"""Brain-inspired replay (van de Ven et al. 2020, Nature Communications 11, 4069): a net draws its own past.

A classifier with feedback connections is also the generator of what it replays, and the net of before the
task tells what that is. What differs is in docs/methods/bir.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import log_softmax, softmax

from everlearn.border import check_number, check_whole
from everlearn.learner import Pace, all_classes, check_passes, lessons
from everlearn.nets import fast
from everlearn.nets.classifier import Classifier
from everlearn.nets.cvae import sample
from everlearn.nets.feedback import Feedback, log_normal, one_hot
from everlearn.nets.seeded import chance, seeded
from everlearn.philox import Purpose
from everlearn.settings import setting
from everlearn.stream import Task


@dataclass(frozen=True)
class Settings:
    """What brain-inspired replay can be told; as the authors' code has it for CIFAR-100."""

    pace: Pace = Pace(rate=1e-4)
    units: int = setting(2000, "of each hidden layer (authors' code: 2000)")
    z: int = setting(100, "numbers of a code (authors' code: 100)")
    gated: float = setting(0.7, "chance of a decoder's unit to be shut for a class (authors': 0.7)")
    temperature: float = setting(2.0, "of the soft targets of what is replayed (authors' code: 2)")
    summed: bool = setting(
        False, "sum the generator's loss over the numbers of an image; else the mean, as their code"
    )

    def __post_init__(self) -> None:
        """Check every number."""
        check_whole(self.units, "units", 1, 10**5)
        check_whole(self.z, "z", 1, 10**5)
        check_number(self.gated, "gated", 0, 1)
        check_number(self.temperature, "temperature", 1e-3, 1e3)


class BIR:
    """A classifier that draws, and a copy of it as it was before the current task."""

    def __init__(self, stream: Any, settings: Settings, device: str) -> None:
        """Start with random weights, which follow from the stream's seed, and nothing to replay."""
        check_passes(stream, settings.pace)
        self.settings, self.device, self._seed = settings, device, stream.seed
        self.batch_size, self.learned = settings.pace.batch_size, 0
        classes, shape = all_classes(stream), stream.canvas.shape
        with seeded(stream.seed):
            net = Feedback(shape, len(classes), settings.units, settings.z, settings.gated)
        self.net, self.model = net, Classifier(net, classes, device)
        self.teacher = deepcopy(net).requires_grad_(False)
        self.past = torch.zeros_like(self.model.met)
        self.optimizer = fast.adam(net.parameters(), settings.pace.rate)
        self._step = fast.Step(self._learn_batch, fast.changed(net, self.optimizer))

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Go through the task beside what the teacher draws; then be the teacher of the next one."""
        self.model.meet(task.classes)
        source = chance(self._seed, Purpose.REPLAY, task.index, self.device)
        old = self.past.nonzero()[:, 0]
        self.batch_size = min(self.settings.pace.batch_size, len(task.train)) * (1 + bool(len(old)))
        share = torch.tensor(1 / (self.learned + 1), device=self.device)
        for batch, _, rate in lessons(task, self.settings.pace, self.device):
            fast.set_rate(self.optimizer, rate)
            units = self.model.unit(batch.labels)
            yield self._step(batch.images, units, share, *self._draw(len(units), old, source))
        self.learned += len(task.train) > 0
        self._teach()

    def _draw(self, count: int, old: Tensor, source: torch.Generator) -> Iterator[Tensor]:
        """Noise for a step's codes; where there is a past, also its units to draw, and noise for them."""
        shape = (count, self.settings.z)
        yield torch.randn(shape, generator=source, device=self.device)
        if len(old):
            rows = torch.randint(len(old), (count,), generator=source, device=self.device)
            yield old[rows]
            for _ in range(2):
                yield torch.randn(shape, generator=source, device=self.device)

    def _learn_batch(
        self, images: Tensor, units: Tensor, share: Tensor, noise: Tensor, *replay: Tensor
    ) -> Tensor:
        """One step on new images and, as many again, on what the teacher draws and says of it."""
        loss = self._loss(images, one_hot(units, len(self.past)), noise, 1.0)
        if replay:
            units, source, code = replay
            drawn, soft = self._recall(units, source)
            again = self._loss(drawn, soft, code, self.settings.temperature)
            loss = share * loss + (1 - share) * again
        return fast.descend(self.optimizer, loss)

    @torch.no_grad()
    def _recall(self, units: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """What the teacher draws of units, and how likely each past class seems to it, (B, classes)."""
        drawn = self.teacher.draw(units, noise)
        logits = self.teacher(drawn).masked_fill(~self.past, -torch.inf)
        return drawn, softmax(logits / self.settings.temperature, 1)

    def _loss(self, images: Tensor, chances: Tensor, noise: Tensor, temperature: float) -> Tensor:
        """Mean over images of the classifier's and the generator's loss, where classes are so likely."""
        net, met, seen = self.net, self.model.met, self.net.see(images)
        z = sample(seen.mean, seen.log_variance, noise)
        distance = 0.5 * (images - net.decode(z, chances)).square().flatten(1).sum(1)
        excess = log_normal(z, seen.mean, seen.log_variance) - net.log_prior(z, chances)
        size = 1 if self.settings.summed else images[0].numel()
        log_p = log_softmax(seen.logits.masked_fill(~met, -torch.inf) / temperature, 1)
        entropy = -(chances * log_p.masked_fill(~met, 0.0)).sum(1)
        return (temperature**2 * entropy + (distance + excess) / size).mean()

    def _teach(self) -> None:
        """Let the net as it is now be the teacher, of the classes met so far."""
        self.teacher.load_state_dict(self.net.state_dict())
        self.past.copy_(self.model.met)

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Name the class with the largest logit."""
        return self.model.predict(images, among)

    def state(self) -> dict[str, Any]:
        """Weights, classes met, what the optimiser keeps and how many tasks there were.

        After a task the teacher is the net, and the past what it met.
        """
        kept = fast.moments(self.optimizer)
        return {**self.model.state(), "optimizer": kept, "learned": self.learned}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.model.load_state(state)
        fast.load_moments(self.optimizer, state["optimizer"])
        self.learned = state["learned"]
        self._teach()
