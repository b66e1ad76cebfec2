"""MobileNetV2 (Sandler et al. 2018, arXiv 1801.04381) at width 1, in two halves.

Latents are what the 14th block's 3 x 3 convolution gives after its ReLU6: between 0 and 6, 576 x 4 x 4
for images of 128 pixels. It is the last ReLU before the 4 x 4 stage, where no short cut passes by.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from everlearn.nets.norm import Norm
from everlearn.nets.pool import Pool
from everlearn.nets.renorm import Renorm
from everlearn.nets.resnet import draw_weights
from everlearn.nets.vit.config import IMAGENET_MEAN, IMAGENET_STD

# Table 2 of the paper: expansion, channels, blocks, stride of the first.
_STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1))
_LAST_STAGES = ((6, 160, 2, 1), (6, 320, 1, 1))
_FIRST, _SPLIT_INSIDE, _SPLIT_OUTSIDE = 32, 96, 160
LATENT_CHANNELS = 6 * _SPLIT_INSIDE
WIDTH = 1280
_CHANNELS = (1, 3)


class Prepare(nn.Module):
    """Images between 0 and 1 as ImageNet's were shown to the net; grey becomes three equal channels."""

    def __init__(self) -> None:
        """Take ImageNet's mean and deviation of each channel."""
        super().__init__()
        self.mean: Tensor
        self.std: Tensor
        self.register_buffer("mean", torch.tensor(IMAGENET_MEAN).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor(IMAGENET_STD).view(1, 3, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        """(B, 1 or 3, H, W) to (B, 3, H, W)."""
        return ((images - self.mean) / self.std).to(images.dtype)


class Inverted(nn.Module):
    """Widen, convolve each channel alone, narrow; beside a short cut where the shape stays."""

    def __init__(
        self, inside: int, outside: int, stride: int, times: int, norm: type[Norm | Renorm]
    ) -> None:
        """Bring `inside` channels to `outside`, one pixel in `stride`, through `times` as many."""
        super().__init__()
        hidden = inside * times
        wide = [] if times == 1 else bend(inside, hidden, 1, norm=norm)
        alone = bend(hidden, hidden, 3, stride, hidden, norm=norm)
        self.layers = nn.Sequential(*wide, *alone, *project(hidden, outside, norm))
        self.short = stride == 1 and inside == outside

    def forward(self, x: Tensor) -> Tensor:
        """Add what the layers find to the input, or take its place."""
        out: Tensor = self.layers(x)
        return x + out if self.short else out


def mobilenet_lower(channels: int) -> nn.Sequential:
    """Images to latents: 13 blocks and two thirds of the 14th."""
    if channels not in _CHANNELS:
        raise ValueError(
            f"mobilenetv2 takes images of 1 or 3 channels, or its latents of {LATENT_CHANNELS}; "
            f"found {channels} channels"
        )
    hidden = LATENT_CHANNELS
    wide, alone = bend(_SPLIT_INSIDE, hidden, 1), bend(hidden, hidden, 3, 2, hidden)
    blocks = _blocks(_FIRST, _STAGES, Norm)
    net = nn.Sequential(Prepare(), *bend(3, _FIRST, 3, 2), *blocks, *wide, *alone)
    draw_weights(net)
    return net


def mobilenet_upper() -> nn.Sequential:
    """Latents to 1280 features: the rest of the 14th block, three more, and the mean over all places."""
    blocks = _blocks(_SPLIT_OUTSIDE, _LAST_STAGES, Renorm)
    last = bend(_LAST_STAGES[-1][1], WIDTH, 1, norm=Renorm)
    net = nn.Sequential(*project(LATENT_CHANNELS, _SPLIT_OUTSIDE, Renorm), *blocks, *last, Pool())
    draw_weights(net)
    return net


def bend(
    inside: int, outside: int, side: int, stride: int = 1, groups: int = 1,
    norm: type[Norm | Renorm] = Norm,
) -> list[nn.Module]:  # fmt: skip
    """A convolution of `side` x `side` places, normalised and cut to 0 .. 6."""
    conv = nn.Conv2d(inside, outside, side, stride, side // 2, groups=groups, bias=False)
    return [conv, norm(outside, cut=False), nn.ReLU6()]


def project(inside: int, outside: int, norm: type[Norm | Renorm]) -> list[nn.Module]:
    """A convolution of single places, normalised but not cut."""
    return [nn.Conv2d(inside, outside, 1, bias=False), norm(outside, cut=False)]


def _blocks(
    inside: int, stages: tuple[tuple[int, int, int, int], ...], norm: type[Norm | Renorm]
) -> list[nn.Module]:
    blocks: list[nn.Module] = []
    for times, outside, count, stride in stages:
        for number in range(count):
            blocks.append(Inverted(inside, outside, stride if number == 0 else 1, times, norm))
            inside = outside
    return blocks
