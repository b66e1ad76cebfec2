"""An environment of a data set: which items its splits show, and where."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from everlearn.factors import canonical
from everlearn.stream.environments.items import Items
from everlearn.stream.environments.lanes import Lane
from everlearn.stream.environments.pasted import Pasted
from everlearn.stream.task import Ints, Split


@dataclass(frozen=True)
class DataSet:
    """Items that move or stand in the middle.

    Attributes:
        first: the id of the first class.
    """

    items: Items
    first: int
    moving: bool
    inverse: bool

    def train(self, lane: Lane) -> Split:
        """Official training images, again and again."""
        return self._drawn(np.flatnonzero(~self.items.tests), lane)

    def test(self, lane: Lane) -> Split:
        """Official test images, each once at most."""
        rows = np.flatnonzero(self.items.tests)
        return self._drawn(rows, lane._replace(rows=min(lane.rows, len(rows))))

    def canonical(self) -> Split:
        """The first training image of each class, in the middle."""
        rows = np.flatnonzero(~self.items.tests)
        _, first = np.unique(self.items.labels[rows], return_index=True)
        return self._split(rows[first], self._middle(len(first)))

    def _drawn(self, rows: Ints, lane: Lane) -> Split:
        places = self._middle(lane.rows)
        if self.moving:
            places = (lane.uniforms(2) * (self.items.farthest + 1)).astype(np.int64)
        return self._split(rows[lane.items(len(rows))], places)

    def _middle(self, rows: int) -> Ints:
        return np.full((rows, 2), self.items.middle)

    def _split(self, which: Ints, places: Ints) -> Split:
        """Row r shows item which[r], places[r] pixels from the left and the top."""
        left, top = places.T
        centres: NDArray[np.float64] = (places + self.items.side / 2) / self.items.size
        factors = canonical(len(which))._replace(x=centres[:, 0], y=centres[:, 1])
        pictures = Pasted(self.items, which, left, top, self.inverse)
        return Split(self.first + self.items.labels[which], pictures, factors)
