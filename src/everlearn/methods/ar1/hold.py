"""Synaptic intelligence as the AR1 codes have it: slopes of the whole loss, importances up to a clip."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from everlearn.nets.anchor import Anchor, Row
from everlearn.nets.path import Path

_TINY = 1e-7  # added to squared moves


class Hold:
    """Holds weights where they were when an experience ended, each by what it did for the loss.

    Attributes:
        total: what each weight did so far, times a multiplier, a row.
        omega: what it did in this experience, a row that a training step changes.
    """

    def __init__(
        self, weights: Sequence[Tensor], strength: float, clip: float, multiplier: float
    ) -> None:
        """Hold nothing yet."""
        self._anchor, self._path = Anchor(weights, strength / 2), Path(weights)
        self._clip, self._multiplier = clip, multiplier
        self.total, self.omega = Row(weights).all, self._path.omega.all
        self._anchor.hold()

    def depart(self) -> Tensor:
        """Before a step: pull at the weights, note where they are and all of their slopes; the penalty."""
        penalty = self._anchor.pull()
        self._path.depart()
        return penalty

    def arrive(self) -> None:
        """After a step: count the move."""
        self._path.arrive()

    def close(self) -> None:
        """End an experience."""
        gain = self.omega / (self._anchor.leave().square() + _TINY)
        self.total += self._multiplier * gain
        self._here()

    def load(self, total: Tensor) -> None:
        """Go on from what weights did, which are where they were then."""
        self.total.copy_(total)
        self._here()

    def _here(self) -> None:
        """Hold the weights where they are, by importances between 0 and the clip."""
        torch.clamp(self.total, 0.0, self._clip, out=self._anchor.importance.all)
        self._anchor.hold()
        self.omega.zero_()
