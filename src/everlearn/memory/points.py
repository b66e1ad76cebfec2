"""Exemplars of any numbers, for streams of points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


class Points:
    """Exemplars of any numbers, float32: `Exemplars` holds pictures of 8 bits."""

    def __init__(self, shape: Sequence[int], device: str | torch.device) -> None:
        """Hold nothing."""
        self.shape, self.device = tuple(shape), torch.device(device)
        self._points: dict[int, Tensor] = {}

    def add(self, labels: Sequence[int], images: Tensor) -> None:
        """Add points (N, C, H, W) of labels, or put them in the place of those known."""
        self._points |= zip(labels, images.to(self.device).clone(), strict=True)

    def remove(self, labels: Sequence[int]) -> None:
        """Forget points."""
        for label in labels:
            del self._points[label]

    @property
    def labels(self) -> list[int]:
        """The labels stored, in ascending order."""
        return sorted(self._points)

    def images(self, labels: Sequence[int] | None = None) -> Tensor:
        """Points (N, C, H, W) in the order asked, or of all in the order of labels."""
        asked = [self._points[label] for label in (self.labels if labels is None else labels)]
        return torch.stack([torch.zeros(self.shape, device=self.device), *asked])[1:]

    def empty(self) -> Points:
        """A memory of the same kind that holds nothing."""
        return Points(self.shape, self.device)

    def copy(self) -> Points:
        """The same memory, which can be edited apart from this one."""
        other = self.empty()
        other.add(self.labels, self.images())
        return other

    def state(self) -> dict[str, Any]:
        """Everything stored."""
        return {"labels": torch.tensor(self.labels, dtype=torch.int64), "points": self.images()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Hold what a state holds, and nothing else."""
        self._points = {}
        self.add(state["labels"].tolist(), state["points"])
