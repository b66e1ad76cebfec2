"""A small convolutional net for CPUs: four convolutions, flat (for maps) or pooled (for classes)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from torch import Tensor, nn

from everlearn.nets.head import Head
from everlearn.nets.norm import Norm
from everlearn.nets.renorm import Renorm

WIDTHS = (32, 64, 128, 128)
FLAT_STRIDES, POOLED_STRIDES = (2, 2, 2, 1), (1, 2, 2, 1)
HIDDEN = 256


class ConvNet(nn.Module):
    """3 x 3 convolutions with batch normalisation and ReLU.

    Args:
        pooled: take the mean over all places, which suits classes; or keep the places, which suits maps.
    """

    def __init__(self, channels: int, outputs: int, size: int, pooled: bool = False) -> None:
        """Start from torch's own random weights."""
        super().__init__()
        strides = POOLED_STRIDES if pooled else FLAT_STRIDES
        self.layers, self.pooled = nn.Sequential(*layers(channels, WIDTHS, strides)), pooled
        self.hidden: nn.Module = nn.Identity()
        self.width = WIDTHS[-1]
        if not pooled:
            side = -(-size // prod(strides))
            self.hidden = nn.Sequential(nn.Linear(WIDTHS[-1] * side * side, HIDDEN), nn.ReLU())
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


def layers(
    inside: int, widths: Sequence[int], strides: Sequence[int], norm: type[Norm | Renorm] = Norm
) -> list[nn.Module]:
    """3 x 3 convolutions, each with its normalisation and ReLU; one pixel in `stride` is kept."""
    out: list[nn.Module] = []
    for outside, stride in zip(widths, strides, strict=True):
        out += [nn.Conv2d(inside, outside, 3, stride, 1, bias=False), norm(outside)]
        inside = outside
    return out
