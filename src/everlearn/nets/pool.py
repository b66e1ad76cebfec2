"""The mean over all places, as a layer."""

from __future__ import annotations

from torch import Tensor, nn


class Pool(nn.Module):
    """(B, C, H, W) to (B, C)."""

    def forward(self, x: Tensor) -> Tensor:
        """Take the mean over all places."""
        return x.mean((2, 3))
