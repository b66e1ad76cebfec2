"""A copy of a net's weights."""

from __future__ import annotations

import torch
from torch import nn


class Snapshot:
    """The weights and running statistics of a net at one time."""

    def __init__(self, net: nn.Module) -> None:
        """Copy the current state."""
        self._tensors = list(net.state_dict().values())
        self._copies = [tensor.clone() for tensor in self._tensors]

    def restore(self) -> None:
        """Restore the state, in place."""
        torch._foreach_copy_(self._tensors, self._copies)
