"""A small convolutional net for CPUs: four convolutions, flattened (for maps) or pooled (for classes)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from torch import Tensor, nn

from everlearn.nets.layers.head import Head
from everlearn.nets.layers.norm import Norm
from everlearn.nets.layers.renorm import Renorm

WIDTHS = (32, 64, 128, 128)
FLAT_STRIDES = (2, 2, 2, 1)
POOLED_STRIDES = (1, 2, 2, 1)
HIDDEN = 256


class ConvNet(nn.Module):
    """3 x 3 convolutions with batch normalisation and ReLU.

    Args:
        pooled: average over positions, which suits classification; otherwise keep them, which suits maps.
    """

    def __init__(self, channels: int, outputs: int, size: int, pooled: bool = False) -> None:
        """Start from torch's default initialisation."""
        super().__init__()
        strides = POOLED_STRIDES if pooled else FLAT_STRIDES
        self.layers = nn.Sequential(*conv_layers(channels, WIDTHS, strides))
        self.pooled = pooled
        self.hidden: nn.Module = nn.Identity()
        self.width = WIDTHS[-1]
        if not pooled:
            side = -(-size // prod(strides))
            self.hidden = nn.Sequential(nn.Linear(WIDTHS[-1] * side * side, HIDDEN), nn.ReLU())
            self.width = HIDDEN
        self.head = Head(self.width, outputs)

    def features(self, images: Tensor) -> Tensor:
        """(B, width)."""
        maps = self.layers(images)
        out: Tensor = self.hidden(maps.mean((2, 3)) if self.pooled else maps.flatten(1))
        return out

    def forward(self, images: Tensor) -> Tensor:
        """(B, outputs)."""
        out: Tensor = self.head(self.features(images))
        return out


def conv_layers(
    in_channels: int,
    widths: Sequence[int],
    strides: Sequence[int],
    norm: type[Norm | Renorm] = Norm,
) -> list[nn.Module]:
    """3 x 3 convolutions, each with its normalisation and ReLU."""
    layers: list[nn.Module] = []
    for out_channels, stride in zip(widths, strides, strict=True):
        layers += [
            nn.Conv2d(in_channels, out_channels, 3, stride, 1, bias=False),
            norm(out_channels),
        ]
        in_channels = out_channels
    return layers
