"""Brain-inspired replay (van de Ven et al. 2020, Nature Communications 11, 4069).

A classifier with feedback connections is also the generator of its replay; the net before the task
generates the images and labels them. What differs is in docs/methods/bir.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import log_softmax, softmax

from everlearn.core.random import Purpose
from everlearn.core.settings import setting
from everlearn.core.validate import check_int, check_number
from everlearn.nets.classifier import Classifier
from everlearn.nets.cvae import reparameterize
from everlearn.nets.feedback_classifier import FeedbackClassifier, log_normal, one_hot
from everlearn.nets.seeded import seeded, seeded_generator
from everlearn.stream import Task, TaskStream
from everlearn.training.adam import Adam
from everlearn.training.captured_step import CapturedStep
from everlearn.training.optimizer_step import (
    load_optimizer_state,
    optimizer_state,
    optimizer_step,
    reset_optimizer,
    set_learning_rate,
    training_state,
)
from everlearn.training.schedule import Schedule, training_batches
from everlearn.training.stream_checks import check_epochs, finite_class_ids


@dataclass(frozen=True)
class Settings:
    """Settings of brain-inspired replay; the defaults are those of the authors' code for CIFAR-100."""

    schedule: Schedule = Schedule(learning_rate=1e-4)
    hidden_units: int = setting(2000, "units of each hidden layer (authors' code: 2000)")
    latent_dim: int = setting(100, "size of the latent code (authors' code: 100)")
    gated_fraction: float = setting(
        0.7, "probability that a decoder unit is gated for a class (authors' code: 0.7)"
    )
    temperature: float = setting(2.0, "softmax temperature of replayed targets (authors' code: 2)")
    reset_optimizer: bool = setting(False, "reset the optimizer's state at every task")
    sum_reconstruction: bool = setting(
        False, "sum the generator's loss over the pixels of an image (authors' code: mean)"
    )

    def __post_init__(self) -> None:
        """Check every number."""
        check_int(self.hidden_units, "hidden_units", 1, 10**5)
        check_int(self.latent_dim, "latent_dim", 1, 10**5)
        check_number(self.gated_fraction, "gated_fraction", 0, 1)
        check_number(self.temperature, "temperature", 1e-3, 1e3)


class BIR:
    """A classifier that generates images, and its copy from before the current task.

    Attributes:
        teacher: that copy.
        past: (classes,) classes that the teacher has learned.
    """

    def __init__(self, stream: TaskStream, settings: Settings, device: str) -> None:
        """Start with random weights that follow from the stream's seed, and nothing to replay."""
        check_epochs(stream, settings.schedule)
        self.settings = settings
        self.device = device
        self.seed = stream.seed
        self.batch_size = settings.schedule.batch_size
        self.learned = 0
        classes = finite_class_ids(stream)
        with seeded(stream.seed):
            net = FeedbackClassifier(
                stream.canvas.shape,
                len(classes),
                settings.hidden_units,
                settings.latent_dim,
                settings.gated_fraction,
            )
        self.net = net
        self.model = Classifier(net, classes, device)
        self.teacher = deepcopy(net).requires_grad_(False)
        self.past = torch.zeros_like(self.model.seen)
        self.optimizer = Adam(net.parameters(), settings.schedule.learning_rate, fused_on_cpu=False)
        self._step = CapturedStep(self._learn_batch, training_state(net, self.optimizer))

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Learn the task beside images that the teacher generates; then become the next teacher."""
        self.model.add_classes(task.classes)
        if self.settings.reset_optimizer:
            reset_optimizer(self.optimizer)
        generator = seeded_generator(self.seed, Purpose.REPLAY, task.index, self.device)
        old = self.past.nonzero()[:, 0]
        new = min(self.settings.schedule.batch_size, len(task.train))
        self.batch_size = 2 * new if len(old) else new
        # The new task weighs as much as each task before it.
        weight = torch.tensor(1 / (self.learned + 1), device=self.device)
        for batch, _, learning_rate in training_batches(task, self.settings.schedule, self.device):
            set_learning_rate(self.optimizer, learning_rate)
            targets = self.model.targets(batch.labels)
            draws = self._draw(len(targets), old, generator)
            yield self._step(batch.images, targets, weight, *draws)
        self.learned += len(task.train) > 0
        self._update_teacher()

    def _draw(self, count: int, old: Tensor, generator: torch.Generator) -> Iterator[Tensor]:
        """Yield noise for a step's codes; given old classes, also targets to replay and their noise, twice.

        The first noise of a replayed image generates it, the second samples its code.
        """
        shape = (count, self.settings.latent_dim)
        yield torch.randn(shape, generator=generator, device=self.device)
        if len(old):
            rows = torch.randint(len(old), (count,), generator=generator, device=self.device)
            yield old[rows]
            for _ in range(2):
                yield torch.randn(shape, generator=generator, device=self.device)

    def _learn_batch(
        self, images: Tensor, targets: Tensor, weight: Tensor, noise: Tensor, *replay: Tensor
    ) -> Tensor:
        """Take a step on new images and on as many that the teacher generates and labels."""
        loss = self._loss(images, one_hot(targets, len(self.past)), noise, 1.0)
        if replay:
            old_targets, image_noise, code_noise = replay
            generated, soft_targets = self._generate(old_targets, image_noise)
            replay_loss = self._loss(generated, soft_targets, code_noise, self.settings.temperature)
            loss = weight * loss + (1 - weight) * replay_loss
        return optimizer_step(self.optimizer, loss)

    @torch.no_grad()
    def _generate(self, targets: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return images of targets by the teacher, and its probabilities of past classes, (B, classes)."""
        images = self.teacher.generate(targets, noise)
        logits = self.teacher(images).masked_fill(~self.past, -torch.inf)
        return images, softmax(logits / self.settings.temperature, 1)

    def _loss(
        self, images: Tensor, probabilities: Tensor, noise: Tensor, temperature: float
    ) -> Tensor:
        """Return the mean loss of classifier and generator for class probabilities (B, classes)."""
        net = self.net
        seen = self.model.seen
        code = net.encode(images)
        z = reparameterize(code.mean, code.log_variance, noise)
        error = 0.5 * (images - net.decode(z, probabilities)).square().flatten(1).sum(1)
        # One sample of KL(q(z | x) || p(z | y)): the prior is a mixture.
        kl = log_normal(z, code.mean, code.log_variance) - net.log_prior(z, probabilities)
        size = 1 if self.settings.sum_reconstruction else images[0].numel()
        log_p = log_softmax(code.logits.masked_fill(~seen, -torch.inf) / temperature, 1)
        # Masked again: 0 times -inf would be no number.
        entropy = -(probabilities * log_p.masked_fill(~seen, 0.0)).sum(1)
        return (temperature**2 * entropy.float() + (error + kl) / size).mean()

    def _update_teacher(self) -> None:
        """Copy the net into the teacher, and the classes seen so far."""
        self.teacher.load_state_dict(self.net.state_dict())
        self.past.copy_(self.model.seen)

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Return the class with the largest logit."""
        return self.model.predict(images, among)

    def state(self) -> dict[str, Any]:
        """Return weights, classes seen, number of tasks learned and, unless reset, the optimizer's state.

        Between tasks the teacher equals the net.
        """
        optimizer = [] if self.settings.reset_optimizer else optimizer_state(self.optimizer)
        return {**self.model.state(), "optimizer": optimizer, "learned": self.learned}

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.model.load_state(state)
        load_optimizer_state(self.optimizer, state["optimizer"])
        self.learned = state["learned"]
        self._update_teacher()
