"""A net as it was."""

from __future__ import annotations

import torch
from torch import nn


class Snapshot:
    """Weights and kept moments of a net at one moment."""

    def __init__(self, net: nn.Module) -> None:
        """Copy them as they are now."""
        self._tensors = list(net.state_dict().values())
        self._copies = [tensor.clone() for tensor in self._tensors]

    def restore(self) -> None:
        """Put them back, in the memory where the net has them."""
        torch._foreach_copy_(self._tensors, self._copies)
