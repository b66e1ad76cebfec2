"""Reservoir sampling (Vitter 1985, algorithm R): a uniform sample of an endless sequence."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everlearn.core.random import Purpose, uniform

Ints = NDArray[np.int64]


class Insertions(NamedTuple):
    """Which of the incoming items are stored, and the slot of each."""

    items: Ints
    slots: Ints


class Reservoir:
    """Assigns slots of a buffer: item n goes to slot j, uniform in 0 .. n - 1, if the buffer has slot j.

    The draw is a function of the seed, the task and the item, so the only state is the item count.
    """

    def __init__(self, capacity: int, seed: int) -> None:
        """Start with no items seen."""
        self.capacity = capacity
        self.seen = 0
        self._seed = seed

    @property
    def used(self) -> Ints:
        """Occupied slots."""
        return np.arange(min(self.seen, self.capacity))

    def slots(self, task: int, count: int) -> Ints:
        """Return the slot of each of the next items in order; `capacity` for items that are discarded."""
        position = self.seen + np.arange(count)
        u = uniform(self._seed, Purpose.MEMORY, task, np.arange(count))[:, 0]
        drawn = (u * (position + 1)).astype(np.int64)
        slots = np.where(position < self.capacity, position, drawn)
        return np.minimum(slots, self.capacity)

    def insert(self, task: int, labels: ArrayLike) -> Insertions:
        """Insert all items of a task at once; the last item of each slot stays. Labels are not used."""
        slots = self.slots(task, len(np.asarray(labels)))
        self.seen += len(slots)
        return Insertions(*last_per_slot(slots, self.capacity))

    def state(self) -> dict[str, Any]:
        """Return the number of items seen."""
        return {"seen": self.seen}

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.seen = state["seen"]


def last_per_slot(slots: Ints, capacity: int) -> tuple[Ints, Ints]:
    """Return the last item of each slot and those slots; slot `capacity` means discarded."""
    unique, index = np.unique(slots[::-1], return_index=True)
    items = len(slots) - 1 - index
    stored = unique < capacity
    return items[stored].astype(np.int64), unique[stored].astype(np.int64)
