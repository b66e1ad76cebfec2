"""A class-balanced choice: every class met keeps the same number of items, chosen at random."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from everlearn.memory.reservoir import Admitted
from everlearn.philox import Floats, Purpose, uniform

Ints = NDArray[np.int64]
_EMPTY = -1


class Balanced:
    """Tells where each item goes. Each item has a random key; a class keeps those with the smallest.

    With C classes there, each may keep capacity // C items, and capacity % C of them one more: those
    whose next item has the smallest key. A class that has fewer items leaves its room empty.
    """

    def __init__(self, capacity: int, seed: int) -> None:
        """Keep nothing yet."""
        self.capacity, self._seed = capacity, seed
        self._labels = np.full(capacity, _EMPTY, np.int64)
        self._keys = np.zeros(capacity)

    @property
    def used(self) -> Ints:
        """The slots in use."""
        return np.flatnonzero(self._labels != _EMPTY)

    def admit(self, task: int, labels: ArrayLike) -> Admitted:
        """Choose among what is kept and the items of a task; new ones take the slots that get free."""
        found = np.asarray(labels, np.int64)
        if not len(found):
            return Admitted(found, found)
        keys = uniform(self._seed, Purpose.MEMORY, task, np.arange(len(found)))[:, 0]
        everything = np.concatenate([self._labels, found])
        stays = self._choose(everything, np.concatenate([self._keys, keys]))
        self._labels[~stays[: self.capacity]] = _EMPTY
        items = np.flatnonzero(stays[self.capacity :])
        slots = np.flatnonzero(self._labels == _EMPTY)[: len(items)]
        self._labels[slots], self._keys[slots] = found[items], keys[items]
        return Admitted(items, slots)

    def _choose(self, labels: Ints, keys: Floats) -> NDArray[np.bool_]:
        """Which of all items stay: of each class those with the smallest keys, up to its share."""
        order = np.lexsort((keys, labels))
        ordered = labels[order]
        classes, first = np.unique(ordered, return_index=True)
        rank = np.arange(len(ordered)) - np.repeat(first, np.diff([*first, len(ordered)]))
        there = ordered != _EMPTY
        share, rest = divmod(self.capacity, int((classes != _EMPTY).sum()))
        following = order[there & (rank == share)]
        out = np.zeros(len(labels), bool)
        out[order[there & (rank < share)]] = True
        out[following[np.argsort(keys[following])][:rest]] = True
        return out

    def state(self) -> dict[str, Any]:
        """The class and the key of each slot."""
        return {"labels": torch.tensor(self._labels), "keys": torch.tensor(self._keys)}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._labels, self._keys = state["labels"].numpy().copy(), state["keys"].numpy().copy()
