"""The generator: a conditional VAE that learns an experience's latents beside those it made before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from everlearn.core.random import Purpose
from everlearn.memory import draw_replay_rows
from everlearn.methods.ar1.patterns import Ints, Patterns
from everlearn.methods.ar1.settings import Settings, replayed_patterns
from everlearn.nets.cvae import CVAE, default_hidden, generator_loss
from everlearn.nets.seeded import seeded, seeded_generator
from everlearn.stream import Task
from everlearn.training.adam import Adam
from everlearn.training.captured_step import CapturedStep
from everlearn.training.optimizer_step import (
    load_optimizer_state,
    optimizer_state,
    reset_optimizer,
    training_state,
)

_SUBSTREAM = 1  # of replay rows; the classifier has 0


class Generator:
    """A conditional VAE and its optimizer.

    Attributes:
        largest: largest number of a real latent, ().

    Args:
        patterns: what is replayed.
        classify: maps latents to logits by the frozen classifier; must be differentiable.
    """

    def __init__(
        self,
        patterns: Patterns,
        classes: int,
        settings: Settings,
        classify: Callable[[Tensor], Tensor],
        seed: int,
    ) -> None:
        """Start with random weights that follow from the seed."""
        self.settings = settings.generator
        self.batch_size = settings.batch_size
        self.resets_optimizer = settings.reset_optimizer
        self.seed = seed
        self.patterns = patterns
        self._classify = classify
        self.device = str(patterns.latents.device)
        shape = patterns.latents.shape[1:]
        with seeded(seed):
            net = CVAE(
                shape,
                classes,
                default_hidden(shape),
                self.settings.latent_dim,
                self.settings.straight_through,
            )
        self.net = net.to(self.device)
        self.weights = list(self.net.parameters())
        self.largest = torch.zeros((), device=self.device)
        self.optimizer = Adam(
            self.weights, self.settings.generator_learning_rate, fused_on_cpu=False
        )
        self._step = CapturedStep(self._learn_batch, training_state(self.net, self.optimizer))

    def learn(self, task: Task, latents: Tensor, targets: Tensor) -> Iterator[Tensor]:
        """Learn the latents of a task beside the patterns; yield the loss after every step."""
        settings = self.settings
        old = 0
        if self.patterns.filled:
            old = replayed_patterns(self.batch_size, settings.generator_replay_fraction)
        new = min(self.batch_size - old, len(targets))
        steps = settings.generator_epochs * (len(targets) // new)
        rows = draw_replay_rows(self.seed, task.index, self.patterns.filled, steps, old, _SUBSTREAM)
        replayed = torch.from_numpy(rows).to(self.device)
        generator = seeded_generator(self.seed, Purpose.GENERATOR, task.index, self.device)
        shape = (steps, new + old, settings.latent_dim)
        noise = torch.randn(shape, generator=generator, device=self.device)
        torch.maximum(self.largest, latents.max(), out=self.largest)
        if self.resets_optimizer:
            reset_optimizer(self.optimizer)
        for step, chosen in enumerate(
            iterate_rows(task, settings.generator_epochs, new, self.device)
        ):
            replayed_rows = replayed[step : step + 1] if old else ()
            yield self._step(latents[chosen], targets[chosen], noise[step], *replayed_rows)

    def _learn_batch(
        self, latents: Tensor, targets: Tensor, noise: Tensor, *replayed_rows: Tensor
    ) -> Tensor:
        """Take a step on reconstruction error, beta KL and eta times the classifier's cross-entropy."""
        for rows in replayed_rows:
            latents = torch.cat([latents, self.patterns.latents[rows]])
            targets = torch.cat([targets, self.patterns.targets[rows]])
        reconstructed, mean, log_variance = self.net(latents, targets, noise)
        loss = generator_loss(latents, reconstructed, mean, log_variance, self.settings.beta)
        loss = (
            loss + self.settings.eta * cross_entropy(self._classify(reconstructed), targets).float()
        )
        # Gradients of the generator's weights only: the classifier's stay as they are.
        gradients = torch.autograd.grad(loss, self.weights)
        for weight, gradient in zip(self.weights, gradients, strict=True):
            weight.grad = gradient
        self.optimizer.step()
        return loss

    @torch.no_grad()
    def generate(self, task: int, labels: Ints) -> Tensor:
        """Generate latents of classes from random codes, clamped at the largest real activation.

        The generator learns again from what it made: without the bound activations would grow from
        experience to experience.
        """
        generator = seeded_generator(self.seed, Purpose.GENERATOR, task, self.device, substream=1)
        shape = (len(labels), self.settings.latent_dim)
        codes = torch.randn(shape, generator=generator, device=self.device)
        latents: Tensor = self.net.decode(codes, torch.from_numpy(labels).to(self.device))
        return latents.clamp_(max=self.largest)

    def state(self) -> dict[str, Any]:
        """Return the weights, the largest number of a latent and, unless reset, the optimizer's state."""
        optimizer = [] if self.resets_optimizer else optimizer_state(self.optimizer)
        return {
            "net": dict(self.net.state_dict()),
            "largest": self.largest,
            "optimizer": optimizer,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.net.load_state_dict(state["net"])
        self.largest.copy_(state["largest"])
        load_optimizer_state(self.optimizer, state["optimizer"])


def iterate_rows(task: Task, epochs: int, size: int, device: str) -> Iterator[Tensor]:
    """Yield the rows of a task batch by batch, in training order; incomplete batches are left out."""
    for epoch in range(epochs if size else 0):
        order = torch.from_numpy(task.order(epoch)).to(device)
        for start in range(0, len(order) - size + 1, size):
            yield order[start : start + size]
