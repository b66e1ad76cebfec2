"""A memory of latents: every experience so far has about the same share of it.

The rule of latent replay (Pellegrini et al. 2020, arXiv 1912.01100), but each experience stores one latent
at least, however many came before: theirs stores nothing once there are more experiences than places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from everlearn.memory.reservoir import Admitted, Ints
from everlearn.philox import Purpose, permutation


class LatentMemory:
    """Room for `capacity` latents with their units on a device, allocated once.

    Attributes:
        latents: (capacity, *shape) float32, of which the first `filled` are held.
        units: (capacity,) int64, likewise.
    """

    def __init__(self, capacity: int, shape: Sequence[int], seed: int, device: str) -> None:
        """Hold nothing yet."""
        self.capacity, self.filled, self._seed = capacity, 0, seed
        self.latents = torch.zeros((capacity, *shape), device=device)
        self.units = torch.zeros(capacity, dtype=torch.int64, device=device)
        self._labels = np.zeros(capacity, np.int64)

    @property
    def labels(self) -> Ints:
        """The units of what is held, to be counted without asking the device."""
        return self._labels[: self.filled]

    def choose(self, task_index: int, count: int) -> Admitted:
        """Which of an experience's latents are kept, and where: in free slots, then in random ones.

        Both follow from the seed, the experience (the first is 0) and how many latents are held.
        """
        most = min(max(1, self.capacity // (task_index + 1)), count)
        items = permutation(self._seed, Purpose.MEMORY, task_index, count)[:most]
        free = np.arange(self.filled, self.capacity)[:most]
        others = permutation(self._seed, Purpose.MEMORY, task_index, self.filled, lane=1)
        return Admitted(items, np.concatenate([free, others[: most - len(free)]]))

    def admit(self, task_index: int, latents: Tensor, labels: Ints) -> None:
        """Keep some latents (N, *shape) of an experience that has ended, with their units (N,)."""
        items, slots = self.choose(task_index, len(labels))
        here, there = (torch.from_numpy(one).to(self.units.device) for one in (items, slots))
        self.latents[there] = latents[here].float()
        self._labels[slots] = labels[items]
        self.filled = max(self.filled, int(slots.max(initial=-1)) + 1)
        self._tell()

    def state(self) -> dict[str, Any]:
        """What is held."""
        return {"latents": self.latents[: self.filled], "units": self.units[: self.filled]}

    def load_state(self, state: dict[str, Any]) -> None:
        """Hold what a state holds, in the memory that is there."""
        self.filled = len(state["units"])
        self.latents[: self.filled] = state["latents"].to(self.latents.device)
        self._labels[: self.filled] = state["units"].cpu().numpy()
        self._tell()

    def _tell(self) -> None:
        """Copy the units to the device."""
        self.units[: self.filled] = torch.from_numpy(self.labels).to(self.units.device)
