"""Reservoir sampling (Vitter 1985, algorithm R): every item of an endless series is kept equally likely."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everlearn.philox import Purpose, uniform

Ints = NDArray[np.int64]


class Admitted(NamedTuple):
    """Which of the items that come are kept, and in which slot each."""

    items: Ints
    slots: Ints


class Reservoir:
    """Tells where each item goes; the n-th one goes to slot j, uniform in 0 .. n - 1, if there is one.

    Its chance follows from the seed, the task and the item, so nothing but a number is remembered.
    """

    def __init__(self, capacity: int, seed: int) -> None:
        """Have seen nothing yet."""
        self.capacity, self.seen, self._seed = capacity, 0, seed

    @property
    def used(self) -> Ints:
        """The slots in use."""
        return np.arange(min(self.seen, self.capacity))

    def slots(self, task: int, count: int) -> Ints:
        """The slot of each of the next items, in the order they come; `capacity` for none."""
        number = self.seen + np.arange(count)
        chance = uniform(self._seed, Purpose.MEMORY, task, np.arange(count))[:, 0]
        drawn = (chance * (number + 1)).astype(np.int64)
        slots = np.where(number < self.capacity, number, drawn)
        return np.minimum(slots, self.capacity)

    def admit(self, task: int, labels: ArrayLike) -> Admitted:
        """Take all items of a task at once: the last one in each slot stays. Labels do not matter."""
        slots = self.slots(task, len(np.asarray(labels)))
        self.seen += len(slots)
        return Admitted(*last_of(slots, self.capacity))

    def state(self) -> dict[str, Any]:
        """How many items came so far."""
        return {"seen": self.seen}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.seen = state["seen"]


def last_of(slots: Ints, capacity: int) -> tuple[Ints, Ints]:
    """The last item in each slot, and the slots; slot `capacity` is none."""
    taken, place = np.unique(slots[::-1], return_index=True)
    items, kept = len(slots) - 1 - place, taken < capacity
    return items[kept].astype(np.int64), taken[kept].astype(np.int64)
