"""A replay memory of latent activations, with about the same share for every experience so far.

The rule of latent replay (Pellegrini et al. 2020, arXiv 1912.01100), except that every experience stores
at least one latent: theirs stores none once there are more experiences than slots.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from everlearn.core.random import Purpose, permutation
from everlearn.memory.reservoir import Insertions, Ints


class LatentMemory:
    """Up to `capacity` latents with their targets on a device, allocated once.

    Attributes:
        filled: number of latents stored; they occupy the first slots.
        latents: (capacity, *shape) float32.
        targets: (capacity,) int64.
    """

    def __init__(self, capacity: int, shape: Sequence[int], seed: int, device: str) -> None:
        """Start empty."""
        self.capacity = capacity
        self.filled = 0
        self._seed = seed
        self.latents = torch.zeros((capacity, *shape), device=device)
        self.targets = torch.zeros(capacity, dtype=torch.int64, device=device)
        self._labels = np.zeros(capacity, np.int64)

    @property
    def labels(self) -> Ints:
        """Targets of the stored latents on the CPU, to count them without a device sync."""
        return self._labels[: self.filled]

    def select(self, task_index: int, count: int) -> Insertions:
        """Select which latents of an experience to store: in free slots first, then in random ones.

        Both depend only on the seed, the experience (from 0) and the number of stored latents.
        """
        stored = min(max(1, self.capacity // (task_index + 1)), count)
        items = permutation(self._seed, Purpose.MEMORY, task_index, count)[:stored]
        free = np.arange(self.filled, self.capacity)[:stored]
        random_slots = permutation(self._seed, Purpose.MEMORY, task_index, self.filled, substream=1)
        return Insertions(items, np.concatenate([free, random_slots[: stored - len(free)]]))

    def insert(self, task_index: int, latents: Tensor, labels: Ints) -> None:
        """Store some latents (N, *shape) of a finished experience, with their targets (N,)."""
        items, slots = self.select(task_index, len(labels))
        rows = torch.from_numpy(items).to(self.targets.device)
        self.latents[torch.from_numpy(slots).to(self.targets.device)] = latents[rows].float()
        self._labels[slots] = labels[items]
        self.filled = max(self.filled, int(slots.max(initial=-1)) + 1)
        self._copy_targets()

    def state(self) -> dict[str, Any]:
        """Return the stored latents and targets."""
        return {"latents": self.latents[: self.filled], "targets": self.targets[: self.filled]}

    def load_state(self, state: dict[str, Any]) -> None:
        """Load a state into the allocated tensors."""
        self.filled = len(state["targets"])
        self.latents[: self.filled] = state["latents"].to(self.latents.device)
        self._labels[: self.filled] = state["targets"].cpu().numpy()
        self._copy_targets()

    def _copy_targets(self) -> None:
        """Copy the targets to the device."""
        self.targets[: self.filled] = torch.from_numpy(self.labels).to(self.targets.device)
