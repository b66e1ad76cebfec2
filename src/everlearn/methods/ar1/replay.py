"""The replay of AR1: latents that were stored, are generated or drawn at random, or none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from everlearn.memory.latent_memory import LatentMemory
from everlearn.methods.ar1.generator import Generator
from everlearn.methods.ar1.patterns import Ints, Patterns, draw_labels, draw_random, find_bound
from everlearn.methods.ar1.settings import Settings


class Replay:
    """The patterns to replay, and where they come from.

    Attributes:
        patterns: latents and targets, always in the same memory.
        generator: makes them, for replay of generated data.
        bound: upper bound of random latents, ().

    Args:
        shape: of a latent.
        classify: maps latents to logits by the frozen classifier; must be differentiable.
    """

    def __init__(
        self,
        settings: Settings,
        shape: tuple[int, int, int],
        classes: int,
        classify: Callable[[Tensor], Tensor],
        seed: int,
        device: str,
    ) -> None:
        """Start with nothing to replay."""
        self.settings = settings
        self.seed = seed
        self.data = settings.replay_data
        self.generator: Generator | None = None
        self.bound = torch.zeros((), device=device)
        self._memory: LatentMemory | None = None
        self._made = Patterns(
            settings.buffer_size if self.data in ("gd", "rd") else 0, shape, device
        )
        self.patterns: Patterns | LatentMemory = self._made
        if self.data == "od":
            self._memory = LatentMemory(settings.buffer_size, shape, seed, device)
            self.patterns = self._memory
        if self.data == "gd":
            self.generator = Generator(self._made, classes, settings, classify, seed)

    def refill(self, task: int, known: list[int]) -> None:
        """Generate or draw new patterns of known classes; stored ones stay."""
        if self.data not in ("gd", "rd"):
            return
        labels = draw_labels(self.seed, task, known, self.settings.buffer_size)
        if self.generator:
            latents = self.generator.generate(task, labels)
        else:
            shape = self._made.latents.shape[1:]
            latents = draw_random(self.seed, task, len(labels), shape, self.bound)
        self._made.fill(latents, labels)

    def remember(self, task: int, latents: Tensor, labels: Ints, is_first: bool) -> None:
        """Store some latents of an experience; bound random ones by those of the first."""
        if self._memory:
            self._memory.insert(task, latents, labels)
        if self.data == "rd" and is_first:
            self.bound.copy_(find_bound(latents))

    def state(self) -> dict[str, Any]:
        """Return stored patterns, the generator and the bound."""
        return {
            "memory": self._memory.state() if self._memory else [],
            "generator": self.generator.state() if self.generator else {},
            "bound": self.bound,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        if self._memory:
            self._memory.load_state(state["memory"])
        if self.generator:
            self.generator.load_state(state["generator"])
        self.bound.copy_(state["bound"])
