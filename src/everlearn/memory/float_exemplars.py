"""Exemplars with float pixels, for streams of feature vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


class FloatExemplars:
    """One float32 exemplar per class, where `Exemplars` stores 8-bit images."""

    def __init__(self, shape: Sequence[int], device: str | torch.device) -> None:
        """Start empty."""
        self.shape = tuple(shape)
        self.device = torch.device(device)
        self._exemplars: dict[int, Tensor] = {}

    def add(self, labels: Sequence[int], images: Tensor) -> None:
        """Add exemplars (N, C, H, W), or replace those of stored labels."""
        self._exemplars |= zip(labels, images.to(self.device).clone(), strict=True)

    def remove(self, labels: Sequence[int]) -> None:
        """Delete exemplars."""
        for label in labels:
            del self._exemplars[label]

    @property
    def labels(self) -> list[int]:
        """Stored labels, in ascending order."""
        return sorted(self._exemplars)

    def images(self, labels: Sequence[int] | None = None) -> Tensor:
        """Return exemplars (N, C, H, W) in the order of `labels`; by default, of all labels."""
        found = [self._exemplars[label] for label in (self.labels if labels is None else labels)]
        # The zeros give the result its shape when there are no labels.
        return torch.stack([torch.zeros(self.shape, device=self.device), *found])[1:]

    def empty(self) -> FloatExemplars:
        """Return an empty memory of the same shape and device."""
        return FloatExemplars(self.shape, self.device)

    def copy(self) -> FloatExemplars:
        """Return a copy that can be edited independently."""
        other = self.empty()
        other.add(self.labels, self.images())
        return other

    def state(self) -> dict[str, Any]:
        """Return labels and exemplars as tensors."""
        return {"labels": torch.tensor(self.labels, dtype=torch.int64), "points": self.images()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Replace the content by that of a state."""
        self._exemplars = {}
        self.add(state["labels"].tolist(), state["points"])
