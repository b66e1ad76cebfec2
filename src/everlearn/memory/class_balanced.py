"""A class-balanced buffer policy: every class seen keeps the same number of random items."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from everlearn.core.random import Floats, Purpose, uniform
from everlearn.memory.reservoir import Insertions

Ints = NDArray[np.int64]
_EMPTY = -1


class ClassBalanced:
    """Assigns slots of a buffer. Every item has a random key, and a class keeps its smallest keys.

    With C classes, each keeps up to capacity // C items, and capacity % C classes one more: those with
    the smallest next key. Slots that a class with fewer items cannot fill stay empty.
    """

    def __init__(self, capacity: int, seed: int) -> None:
        """Start empty."""
        self.capacity = capacity
        self._seed = seed
        self._labels = np.full(capacity, _EMPTY, np.int64)
        self._keys = np.zeros(capacity)

    @property
    def used(self) -> Ints:
        """Occupied slots."""
        return np.flatnonzero(self._labels != _EMPTY)

    def insert(self, task: int, labels: ArrayLike) -> Insertions:
        """Select among stored items and those of a task; new items take the slots that become free."""
        new_labels = np.asarray(labels, np.int64)
        if not len(new_labels):
            return Insertions(new_labels, new_labels)
        new_keys = uniform(self._seed, Purpose.MEMORY, task, np.arange(len(new_labels)))[:, 0]
        all_labels = np.concatenate([self._labels, new_labels])
        kept = self._select(all_labels, np.concatenate([self._keys, new_keys]))
        self._labels[~kept[: self.capacity]] = _EMPTY
        items = np.flatnonzero(kept[self.capacity :])
        slots = np.flatnonzero(self._labels == _EMPTY)[: len(items)]
        self._labels[slots] = new_labels[items]
        self._keys[slots] = new_keys[items]
        return Insertions(items, slots)

    def _select(self, labels: Ints, keys: Floats) -> NDArray[np.bool_]:
        """Return which items to keep: the smallest keys of each class, up to its share."""
        order = np.lexsort((keys, labels))
        ordered = labels[order]
        classes, first = np.unique(ordered, return_index=True)
        rank = np.arange(len(ordered)) - np.repeat(first, np.diff([*first, len(ordered)]))
        occupied = ordered != _EMPTY
        share, remainder = divmod(self.capacity, int((classes != _EMPTY).sum()))
        next_items = order[occupied & (rank == share)]
        kept = np.zeros(len(labels), bool)
        kept[order[occupied & (rank < share)]] = True
        kept[next_items[np.argsort(keys[next_items])][:remainder]] = True
        return kept

    def state(self) -> dict[str, Any]:
        """Return the label and the key of every slot."""
        return {"labels": torch.tensor(self._labels), "keys": torch.tensor(self._keys)}

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self._labels = state["labels"].numpy().copy()
        self._keys = state["keys"].numpy().copy()
