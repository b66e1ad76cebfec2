"""ResNet-18 (He et al. 2016) for any number of channels and outputs, images of 32 to 224 pixels."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from everlearn.nets.layers.conv import Conv2d
from everlearn.nets.layers.head import Head
from everlearn.nets.layers.norm import Norm
from everlearn.nets.layers.renorm import Renorm
from everlearn.nets.layers.side_stream import SHORTCUTS, side_stream
from everlearn.nets.layers.stem import Stem

WIDTHS = (64, 128, 256, 512)
STEMS = ("standard", "small")


class Block(nn.Module):
    """A residual block: two 3 x 3 convolutions and a shortcut."""

    def __init__(
        self, in_channels: int, out_channels: int, stride: int, norm: type[Norm | Renorm] = Norm
    ) -> None:
        """Map `in_channels` to `out_channels`, with a stride in the first convolution."""
        super().__init__()
        self.conv1 = Conv2d(in_channels, out_channels, 3, stride, 1, bias=False)
        self.norm1 = norm(out_channels)
        self.conv2 = Conv2d(out_channels, out_channels, 3, 1, 1, bias=False)
        self.norm2 = norm(out_channels)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or in_channels != out_channels:
            projection = Conv2d(in_channels, out_channels, 1, stride, bias=False)
            self.shortcut = nn.Sequential(projection, norm(out_channels, relu=False))

    def forward(self, x: Tensor) -> Tensor:
        """Add the output of the convolutions to the shortcut."""
        if self.training and x.is_cuda and not isinstance(self.shortcut, nn.Identity):
            return self._forward_side_by_side(x)
        hidden = self.norm1(self.conv1(x))
        out: Tensor = self.norm2(self.conv2(hidden), self.shortcut(x))
        return out

    def _forward_side_by_side(self, x: Tensor) -> Tensor:
        """Compute the projection on another stream; its backward pass will run there, too."""
        side = side_stream(x.device, SHORTCUTS)
        with side.fork(x):
            shortcut = self.shortcut(x)
        convolved = self.conv2(self.norm1(self.conv1(x)))
        side.join()
        out: Tensor = self.norm2(convolved, shortcut)
        return out


class ResNet18(nn.Module):
    """A stem, eight residual blocks, global average pooling and a linear layer.

    Args:
        stem: "standard" (7 x 7 of stride 2, then a pool) or "small" (3 x 3, for small images).
    """

    def __init__(self, channels: int, outputs: int, stem: str = "standard") -> None:
        """Draw weights as He et al. 2015."""
        super().__init__()
        if stem not in STEMS:
            raise ValueError(f"unknown stem {stem!r}; known: {', '.join(STEMS)}")
        self.stem = _stem(channels, stem)
        self.blocks = nn.Sequential(*stages(WIDTHS[0], WIDTHS))
        self.head = Head(WIDTHS[-1], outputs)
        self.width = WIDTHS[-1]
        draw_weights(self)

    def features(self, images: Tensor) -> Tensor:
        """(B, 512), averaged over positions."""
        out: Tensor = self.blocks(self.stem(images)).mean((2, 3))
        return out

    def forward(self, images: Tensor) -> Tensor:
        """(B, outputs)."""
        out: Tensor = self.head(self.features(images))
        return out


def stages(
    in_channels: int, widths: Sequence[int], stride: int = 1, norm: type[Norm | Renorm] = Norm
) -> list[Block]:
    """Two blocks per width; the first stage has `stride`, each later one has stride 2."""
    blocks = []
    for width in widths:
        blocks += [Block(in_channels, width, stride, norm), Block(width, width, 1, norm)]
        in_channels = width
        stride = 2
    return blocks


def draw_weights(net: nn.Module) -> None:
    """Draw the weights of a net's convolutions as He et al. 2015."""
    for layer in net.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")


def _stem(channels: int, stem: str) -> nn.Module:
    if stem == "small":
        return nn.Sequential(nn.Conv2d(channels, 64, 3, 1, 1, bias=False), Norm(64))
    return Stem(channels)
