"""When to stop: a validation loss that no longer falls, and the weights of when it was lowest."""

from __future__ import annotations

import math

from torch import nn

from everlearn.nets.snapshot import Snapshot


class Watch:
    """Watches a loss, and keeps the weights of when it was lowest."""

    def __init__(self, net: nn.Module, patience: int) -> None:
        """Keep nothing yet.

        Args:
            patience: how often the loss may be no lower before it is over.
        """
        self._net = net
        self._best: Snapshot | None = None
        self._least, self._waited, self._patience = math.inf, 0, patience

    def is_over(self, loss: float) -> bool:
        """Take the next loss; say whether to stop."""
        self._waited += 1
        if loss < self._least:
            self._least, self._waited = loss, 0
            self._best = Snapshot(self._net)
        return self._waited >= self._patience

    def restore(self) -> None:
        """Go back to the best weights, if any were kept."""
        if self._best:
            self._best.restore()
