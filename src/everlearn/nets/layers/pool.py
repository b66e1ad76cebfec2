"""Global average pooling as a layer."""

from __future__ import annotations

from torch import Tensor, nn


class GlobalAveragePool(nn.Module):
    """(B, C, H, W) to (B, C)."""

    def forward(self, x: Tensor) -> Tensor:
        """Take the mean over height and width."""
        return x.mean((2, 3))
