"""The conditional VAE at work: it learns the latents of an experience beside what it made before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from everlearn.memory import draw_rows
from everlearn.methods.ar1.patterns import Ints, Patterns
from everlearn.methods.ar1.settings import Settings, replayed_of
from everlearn.nets import fast
from everlearn.nets.cvae import CVAE, generator_loss, usual_hidden
from everlearn.nets.seeded import chance, seeded
from everlearn.philox import Purpose
from everlearn.stream import Task

_LANE = 1  # of draws; the classifier has 0


class Generator:
    """A conditional VAE and its optimiser.

    Args:
        patterns: what is replayed, in memory that stays.
        judge: logits of latents by the frozen classifier; slopes go through it.
    """

    def __init__(
        self,
        patterns: Patterns,
        classes: int,
        settings: Settings,
        judge: Callable[[Tensor], Tensor],
        seed: int,
    ) -> None:
        """Start with random weights, which follow from the seed."""
        self.settings, self.seed, self.patterns, self._judge = settings, seed, patterns, judge
        self.device = str(patterns.latents.device)
        shape = patterns.latents.shape[1:]
        with seeded(seed):
            own = settings.generation
            net = CVAE(shape, classes, usual_hidden(shape), own.z, own.through)
        self.net = net.to(self.device)
        self.weights = list(self.net.parameters())
        self.largest = torch.zeros((), device=self.device)
        self.optimizer = fast.adam(self.weights, settings.generation.generator_rate)
        self._step = fast.Step(self._learn_batch, fast.changed(self.net, self.optimizer))

    def learn(self, task: Task, latents: Tensor, units: Tensor) -> Iterator[Tensor]:
        """Go through the latents of a task beside the patterns; yield the loss after every step."""
        own, size = self.settings.generation, self.settings.batch_size
        old = replayed_of(size, own.generator_share) if self.patterns.filled else 0
        new = min(size - old, len(units))
        steps = own.generator_epochs * (len(units) // new)
        rows = draw_rows(self.seed, task.index, self.patterns.filled, steps, old, _LANE)
        recalled = torch.from_numpy(rows).to(self.device)
        source = chance(self.seed, Purpose.GENERATOR, task.index, self.device)
        noise = torch.randn((steps, new + old, own.z), generator=source, device=self.device)
        torch.maximum(self.largest, latents.max(), out=self.largest)
        fast.forget(self.optimizer)
        for step, chosen in enumerate(passes(task, own.generator_epochs, new, self.device)):
            extra = recalled[step : step + 1] if old else ()
            yield self._step(latents[chosen], units[chosen], noise[step], *extra)

    def _learn_batch(
        self, latents: Tensor, units: Tensor, noise: Tensor, *recalled: Tensor
    ) -> Tensor:
        """One step down the error, the divergence from the prior and what the classifier misreads."""
        for rows in recalled:
            latents = torch.cat([latents, self.patterns.latents[rows]])
            units = torch.cat([units, self.patterns.units[rows]])
        own = self.settings.generation
        made, mean, log_variance = self.net(latents, units, noise)
        loss = generator_loss(latents, made, mean, log_variance, own.beta)
        loss = loss + own.eta * cross_entropy(self._judge(made), units)
        # Only to the generator's own weights: those of the classifier are passed through.
        for weight, slope in zip(
            self.weights, torch.autograd.grad(loss, self.weights), strict=True
        ):
            weight.grad = slope
        self.optimizer.step()
        return loss

    @torch.no_grad()
    def draw(self, task: int, labels: Ints) -> Tensor:
        """Make latents of classes, from random codes; no number is above the largest that was real.

        What it makes it learns from again: without a bound, numbers grow from experience to experience.
        """
        source = chance(self.seed, Purpose.GENERATOR, task, self.device, lane=1)
        codes = torch.randn(
            (len(labels), self.settings.generation.z), generator=source, device=self.device
        )
        made: Tensor = self.net.decode(codes, torch.from_numpy(labels).to(self.device))
        return made.clamp_(max=self.largest)

    def state(self) -> dict[str, Any]:
        """Its weights, and the largest number of a latent."""
        return {"net": dict(self.net.state_dict()), "largest": self.largest}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.net.load_state_dict(state["net"])
        self.largest.copy_(state["largest"])


def passes(task: Task, epochs: int, size: int, device: str) -> Iterator[Tensor]:
    """Rows of a task, batch by batch, in the order that follows from the seed; rests are left out."""
    for epoch in range(epochs if size else 0):
        order = torch.from_numpy(task.order(epoch)).to(device)
        for start in range(0, len(order) - size + 1, size):
            yield order[start : start + size]
