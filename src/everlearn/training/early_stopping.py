"""Early stopping on a validation loss, with the weights of the best one."""

from __future__ import annotations

import math

from torch import nn

from everlearn.training.snapshot import Snapshot


class EarlyStopping:
    """Tracks a validation loss, and keeps the weights of its minimum."""

    def __init__(self, net: nn.Module, patience: int) -> None:
        """Start without a loss.

        Args:
            patience: number of losses without a new minimum after which to stop.
        """
        self._net = net
        self._patience = patience
        self._best: Snapshot | None = None
        self._lowest = math.inf
        self._since_best = 0

    def should_stop(self, loss: float) -> bool:
        """Record a loss; return whether to stop."""
        self._since_best += 1
        if loss < self._lowest:
            self._lowest = loss
            self._since_best = 0
            self._best = Snapshot(self._net)
        return self._since_best >= self._patience

    def restore(self) -> None:
        """Restore the best weights, if there are any."""
        if self._best:
            self._best.restore()
