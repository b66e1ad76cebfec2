"""DatasetEnvironment: which items of a data set the splits show, and where."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from everlearn.factors import canonical_factors
from everlearn.stream.environments.draws import RowDraws
from everlearn.stream.environments.images import PastedImages
from everlearn.stream.environments.items import Items
from everlearn.stream.task import Ints, Split


@dataclass(frozen=True)
class DatasetEnvironment:
    """Items of a data set that move or are centred.

    Attributes:
        first_class: the id of the first class.
    """

    items: Items
    first_class: int
    moving: bool
    inverse: bool

    def train(self, draws: RowDraws) -> Split:
        """Make a training split that cycles through the official training images."""
        return self._make_split(np.flatnonzero(~self.items.is_test), draws)

    def test(self, draws: RowDraws) -> Split:
        """Make a test split of official test images, each at most once."""
        rows = np.flatnonzero(self.items.is_test)
        return self._make_split(rows, draws._replace(rows=min(draws.rows, len(rows))))

    def canonical(self) -> Split:
        """Make a split of the first training image of each class, centred."""
        rows = np.flatnonzero(~self.items.is_test)
        _, first = np.unique(self.items.labels[rows], return_index=True)
        return self._split(rows[first], self._centred(len(first)))

    def _make_split(self, rows: Ints, draws: RowDraws) -> Split:
        offsets = self._centred(draws.rows)
        if self.moving:
            offsets = (draws.uniforms(2) * (self.items.max_offset + 1)).astype(np.int64)
        return self._split(rows[draws.items(len(rows))], offsets)

    def _centred(self, rows: int) -> Ints:
        return np.full((rows, 2), self.items.centre_offset)

    def _split(self, which: Ints, offsets: Ints) -> Split:
        """Make a split in which row r shows item which[r], offsets[r] pixels from the left and the top."""
        left, top = offsets.T
        centres: NDArray[np.float64] = (offsets + self.items.side / 2) / self.items.size
        factors = canonical_factors(len(which))._replace(x=centres[:, 0], y=centres[:, 1])
        images = PastedImages(self.items, which, left, top, self.inverse)
        return Split(self.first_class + self.items.labels[which], images, factors)
