"""The greedy balancing sampler of GDumb (Prabhu et al. 2020, algorithm 1)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from everlearn.core.random import Purpose, uniform
from everlearn.memory.reservoir import Insertions

Ints = NDArray[np.int64]
_EMPTY = -1


class GreedyBalanced:
    """Assigns slots of a buffer to items in the order of arrival.

    An item is stored if its class has fewer than capacity / classes items. When the buffer is full, a
    random item of the largest class is evicted, ties between classes broken at random. Unlike
    `ClassBalanced`, it always fills the buffer, and it favours the first items of a class.
    """

    def __init__(self, capacity: int, seed: int) -> None:
        """Start empty."""
        self.capacity = capacity
        self.filled = 0
        self._seed = seed
        self._class_index: dict[int, int] = {}  # classes seen, numbered in order of arrival
        self._counts = np.zeros(0, np.int64)  # items of each class index
        self._slot_class = np.full(capacity, _EMPTY, np.int64)  # class index of each slot

    @property
    def used(self) -> Ints:
        """Occupied slots."""
        return np.arange(self.filled)

    def insert(self, task: int, labels: ArrayLike) -> Insertions:
        """Insert the items of a task one by one; later items may evict earlier ones of the same task."""
        new_labels = np.asarray(labels, np.int64)
        u = uniform(self._seed, Purpose.MEMORY, task, np.arange(len(new_labels)), count=2)
        items = np.full(self.capacity, _EMPTY, np.int64)
        for item, label in enumerate(new_labels.tolist()):
            index = self._index_of(label)
            if self._counts[index] * len(self._counts) < self.capacity:
                slot = self._free_slot(*u[item])
                items[slot] = item
                self._slot_class[slot] = index
                self._counts[index] += 1
        slots = np.flatnonzero(items != _EMPTY)
        return Insertions(items[slots], slots)

    def _index_of(self, label: int) -> int:
        """Return the index of a class; a new class gets the next one."""
        if label not in self._class_index:
            self._class_index[label] = len(self._class_index)
            self._counts = np.append(self._counts, 0)
        return self._class_index[label]

    def _free_slot(self, class_u: float, item_u: float) -> int:
        """Return the next empty slot, or evict a random item of a largest class."""
        if self.filled < self.capacity:
            self.filled += 1
            return self.filled - 1
        max_count = self._counts.max()
        largest = np.flatnonzero(self._counts == max_count)
        evicted = largest[int(class_u * len(largest))]
        self._counts[evicted] -= 1
        return int(np.flatnonzero(self._slot_class == evicted)[int(item_u * max_count)])

    def state(self) -> dict[str, Any]:
        """Return the classes seen, in order of arrival, and the class index of every slot."""
        return {
            "met": torch.tensor(list(self._class_index), dtype=torch.int64),
            "held": torch.tensor(self._slot_class),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self._class_index = {label: index for index, label in enumerate(state["met"].tolist())}
        self._slot_class = state["held"].numpy().copy()
        occupied = self._slot_class[self._slot_class != _EMPTY]
        self._counts = np.bincount(occupied, minlength=len(self._class_index))
        self.filled = len(occupied)
