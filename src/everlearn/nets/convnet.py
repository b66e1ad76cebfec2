"""A small convolutional net for CPUs: four convolutions, flat (for maps) or pooled (for classes)."""

from __future__ import annotations

from torch import Tensor, nn

from everlearn.nets.head import Head
from everlearn.nets.norm import Norm

WIDTHS = (32, 64, 128, 128)
HIDDEN = 256


class ConvNet(nn.Module):
    """3 x 3 convolutions with batch normalisation and ReLU.

    Args:
        pooled: take the mean over all places, which suits classes; or keep the places, which suits maps.
    """

    def __init__(self, channels: int, outputs: int, size: int, pooled: bool = False) -> None:
        """Start from torch's own random weights."""
        super().__init__()
        strides = (1, 2, 2, 1) if pooled else (2, 2, 2, 1)
        layers: list[nn.Module] = []
        side, inside = size, channels
        for outside, stride in zip(WIDTHS, strides, strict=True):
            layers += [nn.Conv2d(inside, outside, 3, stride, 1, bias=False), Norm(outside)]
            side, inside = -(-side // stride), outside
        self.layers, self.pooled = nn.Sequential(*layers), pooled
        self.hidden: nn.Module = nn.Identity()
        self.width = inside
        if not pooled:
            self.hidden = nn.Sequential(nn.Linear(inside * side * side, HIDDEN), nn.ReLU())
            self.width = HIDDEN
        self.head = Head(self.width, outputs)

    def features(self, images: Tensor) -> Tensor:
        """(B, width)."""
        seen = self.layers(images)
        out: Tensor = self.hidden(seen.mean((2, 3)) if self.pooled else seen.flatten(1))
        return out

    def forward(self, images: Tensor) -> Tensor:
        """(B, outputs)."""
        out: Tensor = self.head(self.features(images))
        return out
