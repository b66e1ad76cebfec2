"""The greedy sampler of GDumb (Prabhu et al. 2020, algorithm 1): room goes to the classes with least."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from everlearn.memory.reservoir import Admitted
from everlearn.philox import Purpose, uniform

Ints = NDArray[np.int64]
_EMPTY = -1


class Greedy:
    """Tells where each item goes, in the order they come.

    An item of a class with fewer than capacity / classes items enters. When there is no room, an item of
    the largest class leaves, at random; of several largest classes one is drawn. Unlike `Balanced`, it
    fills its room whatever the classes have, and keeps the first items of a class that come, not any.
    """

    def __init__(self, capacity: int, seed: int) -> None:
        """Keep nothing yet."""
        self.capacity, self.filled, self._seed = capacity, 0, seed
        self._numbers: dict[int, int] = {}  # the classes met, numbered as they came
        self._counts = np.zeros(0, np.int64)  # by number
        self._held = np.full(capacity, _EMPTY, np.int64)  # the number of the class in each slot

    @property
    def used(self) -> Ints:
        """The slots in use."""
        return np.arange(self.filled)

    def admit(self, task: int, labels: ArrayLike) -> Admitted:
        """Take the items of a task one after another; of those that enter, some may leave again."""
        found = np.asarray(labels, np.int64)
        chances = uniform(self._seed, Purpose.MEMORY, task, np.arange(len(found)), count=2)
        items = np.full(self.capacity, _EMPTY, np.int64)
        for item, label in enumerate(found.tolist()):
            number = self._number(label)
            if self._counts[number] * len(self._counts) < self.capacity:
                slot = self._make_room(*chances[item])
                items[slot], self._held[slot] = item, number
                self._counts[number] += 1
        slots = np.flatnonzero(items != _EMPTY)
        return Admitted(items[slots], slots)

    def _number(self, label: int) -> int:
        """The number of a class, which it gets when it comes first."""
        if label not in self._numbers:
            self._numbers[label] = len(self._numbers)
            self._counts = np.append(self._counts, 0)
        return self._numbers[label]

    def _make_room(self, which_class: float, which_item: float) -> int:
        """The next empty slot; or that of an item of the largest class, which leaves."""
        if self.filled < self.capacity:
            self.filled += 1
            return self.filled - 1
        most = self._counts.max()
        largest = np.flatnonzero(self._counts == most)
        leaving = largest[int(which_class * len(largest))]
        self._counts[leaving] -= 1
        return int(np.flatnonzero(self._held == leaving)[int(which_item * most)])

    def state(self) -> dict[str, Any]:
        """The classes met in the order they came, and which of them is in each slot."""
        return {
            "met": torch.tensor(list(self._numbers), dtype=torch.int64),
            "held": torch.tensor(self._held),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._numbers = {label: number for number, label in enumerate(state["met"].tolist())}
        self._held = state["held"].numpy().copy()
        kept = self._held[self._held != _EMPTY]
        self._counts = np.bincount(kept, minlength=len(self._numbers))
        self.filled = len(kept)
