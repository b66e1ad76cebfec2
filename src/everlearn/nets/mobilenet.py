"""MobileNetV2 (Sandler et al. 2018, arXiv 1801.04381) at width 1, split into two halves.

Latents are the output of the 14th block's 3 x 3 convolution after its ReLU6: between 0 and 6, 576 x 4 x 4
for images of 128 pixels. It is the last ReLU before the 4 x 4 stage that no shortcut bypasses.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from everlearn.nets.layers.norm import Norm
from everlearn.nets.layers.pool import GlobalAveragePool
from everlearn.nets.layers.renorm import Renorm
from everlearn.nets.resnet import draw_weights
from everlearn.nets.vit.config import IMAGENET_MEAN, IMAGENET_STD

# Table 2 of the paper: expansion, channels, blocks, stride of the first.
_STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1))
_LAST_STAGES = ((6, 160, 2, 1), (6, 320, 1, 1))
_STEM_WIDTH = 32
_SPLIT_IN = 96  # channels into and out of the block that is split
_SPLIT_OUT = 160
LATENT_CHANNELS = 6 * _SPLIT_IN
WIDTH = 1280
_CHANNELS = (1, 3)


class ImageNetNormalize(nn.Module):
    """Standardises images from [0, 1] as for ImageNet; grey becomes three equal channels."""

    def __init__(self) -> None:
        """Use ImageNet's mean and standard deviation of each channel."""
        super().__init__()
        self.mean: Tensor
        self.std: Tensor
        self.register_buffer("mean", torch.tensor(IMAGENET_MEAN).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor(IMAGENET_STD).view(1, 3, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        """(B, 1 or 3, H, W) to (B, 3, H, W)."""
        return ((images - self.mean) / self.std).to(images.dtype)


class InvertedResidual(nn.Module):
    """Expand, convolve depthwise, project; with a shortcut where the shape stays."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        stride: int,
        expansion: int,
        norm: type[Norm | Renorm],
    ) -> None:
        """Map `in_channels` to `out_channels` through `expansion` times as many."""
        super().__init__()
        hidden = in_channels * expansion
        expand = [] if expansion == 1 else conv_relu6(in_channels, hidden, 1, norm=norm)
        depthwise = conv_relu6(hidden, hidden, 3, stride, hidden, norm=norm)
        self.layers = nn.Sequential(*expand, *depthwise, *project(hidden, out_channels, norm))
        self.has_shortcut = stride == 1 and in_channels == out_channels

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layers, and add the input where there is a shortcut."""
        out: Tensor = self.layers(x)
        return x + out if self.has_shortcut else out


def mobilenet_lower(channels: int) -> nn.Sequential:
    """Images to latents: 13 blocks and two thirds of the 14th."""
    if channels not in _CHANNELS:
        raise ValueError(
            f"mobilenetv2 takes images of 1 or 3 channels, or its latents of {LATENT_CHANNELS}; "
            f"found {channels} channels"
        )
    hidden = LATENT_CHANNELS
    expand = conv_relu6(_SPLIT_IN, hidden, 1)
    depthwise = conv_relu6(hidden, hidden, 3, 2, hidden)
    blocks = _blocks(_STEM_WIDTH, _STAGES, Norm)
    stem = conv_relu6(3, _STEM_WIDTH, 3, 2)
    net = nn.Sequential(ImageNetNormalize(), *stem, *blocks, *expand, *depthwise)
    draw_weights(net)
    return net


def mobilenet_upper() -> nn.Sequential:
    """Latents to 1280 features: the rest of the 14th block, three more, and global average pooling."""
    blocks = _blocks(_SPLIT_OUT, _LAST_STAGES, Renorm)
    last = conv_relu6(_LAST_STAGES[-1][1], WIDTH, 1, norm=Renorm)
    first = project(LATENT_CHANNELS, _SPLIT_OUT, Renorm)
    net = nn.Sequential(*first, *blocks, *last, GlobalAveragePool())
    draw_weights(net)
    return net


def conv_relu6(
    in_channels: int, out_channels: int, kernel: int, stride: int = 1, groups: int = 1,
    norm: type[Norm | Renorm] = Norm,
) -> list[nn.Module]:  # fmt: skip
    """A convolution, its normalisation and ReLU6."""
    conv = nn.Conv2d(
        in_channels, out_channels, kernel, stride, kernel // 2, groups=groups, bias=False
    )
    return [conv, norm(out_channels, relu=False), nn.ReLU6()]


def project(in_channels: int, out_channels: int, norm: type[Norm | Renorm]) -> list[nn.Module]:
    """A 1 x 1 convolution and its normalisation, without an activation."""
    return [nn.Conv2d(in_channels, out_channels, 1, bias=False), norm(out_channels, relu=False)]


def _blocks(
    in_channels: int, stages: tuple[tuple[int, int, int, int], ...], norm: type[Norm | Renorm]
) -> list[nn.Module]:
    blocks: list[nn.Module] = []
    for expansion, width, count, stride in stages:
        for number in range(count):
            stride = stride if number == 0 else 1
            blocks.append(InvertedResidual(in_channels, width, stride, expansion, norm))
            in_channels = width
    return blocks
