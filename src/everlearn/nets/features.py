"""Features of a net, alone or with its logits, in one pass."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class Features(nn.Module):
    """A net without its head: (B, width), float32."""

    def __init__(self, net: Any) -> None:
        """Share the weights of a net."""
        super().__init__()
        self.net = net

    def forward(self, images: Tensor) -> Tensor:
        """(B, width)."""
        features: Tensor = self.net.features(images)
        return features.float()


class FeaturesAndLogits(nn.Module):
    """The features of a net followed by its logits, (B, width + outputs), float64."""

    def __init__(self, net: Any) -> None:
        """Share the weights of a net."""
        super().__init__()
        self.net = net

    def forward(self, images: Tensor) -> Tensor:
        """(B, width + outputs)."""
        features = self.net.features(images)
        return torch.cat([features.double(), self.net.head(features)], 1)
