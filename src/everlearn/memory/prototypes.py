"""Class prototypes: the mean feature vector and the count of each class, merged by counts.

Prototypes travel as one float32 mean and one 32-bit count per class. Local sums are float64, so only
merged means were rounded to float32, once.
"""

from __future__ import annotations

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from everlearn.core.validate import check_int
from everlearn.memory import validation


class Prototypes:
    """Mean vectors of classes, on the CPU."""

    def __init__(self, size: int) -> None:
        self.size = check_int(size, "size", 1, 2**31)
        self._labels = torch.zeros(0, dtype=torch.int64)
        self._sums = torch.zeros((0, size), dtype=torch.float64)
        self._counts = torch.zeros(0, dtype=torch.int64)

    def add(self, labels: ArrayLike | Tensor, vectors: Tensor) -> None:
        """Add vectors (B, d) to the means of their labels (B,)."""
        label_tensor = torch.tensor(validation.check_labels(labels), dtype=torch.int64)
        self._check(vectors)
        if len(label_tensor) != len(vectors):
            raise ValueError(f"found {len(label_tensor)} labels for {len(vectors)} vectors")
        ones = torch.ones_like(label_tensor)
        self._pool(label_tensor, vectors.detach().double().cpu(), ones)

    def merge(self, other: Prototypes) -> None:
        """Merge other prototypes into these: p = (n_a p_a + n_b p_b) / (n_a + n_b).

        Vectors that both have seen are counted twice.
        """
        if other.size != self.size:
            raise ValueError(
                f"vectors have size {self.size} here and {other.size} in the other prototypes"
            )
        sums = other.means().double() * other.counts[:, None]
        self._pool(other._labels, sums, other.counts)

    @property
    def labels(self) -> list[int]:
        """Labels, in ascending order."""
        return [int(label) for label in self._labels]

    @property
    def counts(self) -> Tensor:
        """Number of vectors behind each mean, (C,) int64 in the order of labels."""
        return self._counts.clone()

    def means(self) -> Tensor:
        """Return the mean of each class, (C, d) float32 in the order of labels."""
        return (self._sums / self._counts[:, None]).float()

    def __len__(self) -> int:
        """Return the number of classes."""
        return len(self._labels)

    @property
    def bytes(self) -> int:
        """Size in transit: 4 (d + 1) bytes per class."""
        return 4 * (self.size + 1) * len(self)

    def predict(self, vectors: Tensor) -> Tensor:
        """Return the label of the nearest mean for vectors (B, d); ties go to the smaller label."""
        self._check(vectors)
        if not len(self):
            raise ValueError("there are no prototypes yet: add vectors before predicting")
        means = self.means().to(vectors.device)
        # Not by a matrix product, which cancels small differences.
        mode = "donot_use_mm_for_euclid_dist"
        nearest = torch.cdist(vectors.detach().float(), means, compute_mode=mode).argmin(1)
        return self._labels.to(vectors.device)[nearest]

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
