"""Prototypes: the mean vector of each class and how many it is the mean of, merged by counts.

A class is sent as one float32 mean and one 32-bit count. Own sums are kept in float64, so only
what comes from others has been rounded, once, to float32.
"""

from __future__ import annotations

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from everlearn.border import check_whole
from everlearn.memory import checks


class Prototypes:
    """Means of vectors of one size, on the CPU."""

    def __init__(self, size: int) -> None:
        self.size = check_whole(size, "size", 1, 2**31)
        self._labels = torch.zeros(0, dtype=torch.int64)
        self._sums = torch.zeros((0, size), dtype=torch.float64)
        self._counts = torch.zeros(0, dtype=torch.int64)

    def add(self, labels: ArrayLike | Tensor, vectors: Tensor) -> None:
        """Take vectors (B, d) into the means of their labels (B,)."""
        found = torch.tensor(checks.check_labels(labels), dtype=torch.int64)
        self._check(vectors)
        if len(found) != len(vectors):
            raise ValueError(f"found {len(found)} labels for {len(vectors)} vectors")
        self._pool(found, vectors.detach().double().cpu(), torch.ones_like(found))

    def merge(self, other: Prototypes) -> None:
        """Take over, in place, what another sends: p = (n_a p_a + n_b p_b) / (n_a + n_b).

        All that it counts is taken as new: what both have seen is counted twice.
        """
        if other.size != self.size:
            raise ValueError(f"vectors are of size {self.size} here and {other.size} there")
        sums = other.means().double() * other.counts[:, None]
        self._pool(other._labels, sums, other.counts)

    @property
    def labels(self) -> list[int]:
        """The labels, in ascending order."""
        return [int(label) for label in self._labels]

    @property
    def counts(self) -> Tensor:
        """How many vectors each mean is of, (C,) int64 in the order of labels."""
        return self._counts.clone()

    def means(self) -> Tensor:
        """The mean of each class, (C, d) float32 in the order of labels."""
        return (self._sums / self._counts[:, None]).float()

    def __len__(self) -> int:
        """Count the classes."""
        return len(self._labels)

    @property
    def bytes(self) -> int:
        """What is sent: 4 (d + 1) for each class."""
        return 4 * (self.size + 1) * len(self)

    def predict(self, vectors: Tensor) -> Tensor:
        """Return the label of the nearest mean for vectors (B, d); ties go to the smaller label."""
        self._check(vectors)
        if not len(self):
            raise ValueError("there are no prototypes yet: add vectors before predicting")
        means = self.means().to(vectors.device)
        # Not by a matrix product, which loses small differences.
        mode = "donot_use_mm_for_euclid_dist"
        near = torch.cdist(vectors.detach().float(), means, compute_mode=mode).argmin(1)
        return self._labels.to(vectors.device)[near]

    def _check(self, vectors: Tensor) -> None:
        if vectors.ndim != 2 or vectors.shape[1] != self.size or not vectors.is_floating_point():
            found = f"{tuple(vectors.shape)} {vectors.dtype}"
            raise ValueError(f"vectors must be (B, {self.size}) float, found {found}")

    def _pool(self, labels: Tensor, sums: Tensor, counts: Tensor) -> None:
        """Add sums and counts to those of the same labels."""
        pooled, place = torch.unique(torch.cat([self._labels, labels]), return_inverse=True)
        empty = torch.zeros((len(pooled), self.size), dtype=torch.float64)
        self._sums = empty.index_add(0, place, torch.cat([self._sums, sums]))
        zero = torch.zeros(len(pooled), dtype=torch.int64)
        self._counts = zero.index_add(0, place, torch.cat([self._counts, counts]))
        self._labels = pooled
