"""ResNet-18 (He et al. 2016) for any number of channels and outputs, images of 32 to 224 pixels."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from everlearn.nets.head import Head
from everlearn.nets.norm import Norm
from everlearn.nets.renorm import Renorm
from everlearn.nets.stem import Stem

WIDTHS = (64, 128, 256, 512)
STEMS = ("standard", "small")


class Block(nn.Module):
    """Two 3 x 3 convolutions beside a short cut."""

    def __init__(
        self, inside: int, outside: int, stride: int, norm: type[Norm | Renorm] = Norm
    ) -> None:
        """Bring `inside` channels to `outside`, one pixel in `stride`."""
        super().__init__()
        self.first = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.first_norm = norm(outside)
        self.second = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.second_norm = norm(outside)
        self.short: nn.Module = nn.Identity()
        if stride != 1 or inside != outside:
            narrow = nn.Conv2d(inside, outside, 1, stride, bias=False)
            self.short = nn.Sequential(narrow, norm(outside, cut=False))

    def forward(self, x: Tensor) -> Tensor:
        """Add what the convolutions find to the input."""
        inner = self.first_norm(self.first(x))
        out: Tensor = self.second_norm(self.second(inner), self.short(x))
        return out


class ResNet18(nn.Module):
    """Eight blocks, the mean over all places, one linear layer.

    Args:
        stem: "standard" (7 x 7, one pixel in two, then a pool) or "small" (3 x 3, for small images).
    """

    def __init__(self, channels: int, outputs: int, stem: str = "standard") -> None:
        """Start from random weights, as He et al. 2015."""
        super().__init__()
        if stem not in STEMS:
            raise ValueError(f"unknown stem {stem!r}; known: {', '.join(STEMS)}")
        self.stem = _stem(channels, stem)
        self.blocks = nn.Sequential(*stages(WIDTHS[0], WIDTHS))
        self.head = Head(WIDTHS[-1], outputs)
        self.width = WIDTHS[-1]
        draw_weights(self)

    def features(self, images: Tensor) -> Tensor:
        """(B, 512), the mean over all places."""
        out: Tensor = self.blocks(self.stem(images)).mean((2, 3))
        return out

    def forward(self, images: Tensor) -> Tensor:
        """(B, outputs)."""
        out: Tensor = self.head(self.features(images))
        return out


def stages(
    inside: int, widths: Sequence[int], stride: int = 1, norm: type[Norm | Renorm] = Norm
) -> list[Block]:
    """Two blocks a width; the first stage keeps one pixel in `stride`, each later one one in two."""
    blocks = []
    for outside in widths:
        blocks += [Block(inside, outside, stride, norm), Block(outside, outside, 1, norm)]
        inside, stride = outside, 2
    return blocks


def draw_weights(net: nn.Module) -> None:
    """Give the convolutions of a net random weights, as He et al. 2015."""
    for layer in net.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")


def _stem(channels: int, stem: str) -> nn.Module:
    if stem == "small":
        return nn.Sequential(nn.Conv2d(channels, 64, 3, 1, 1, bias=False), Norm(64))
    return Stem(channels)
