"""Nets split into two halves, by name: replayed latents enter between the halves."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import NamedTuple

import torch
from torch import Tensor, nn

from everlearn.nets import convnet, mlp, mobilenet, resnet, slim
from everlearn.nets.layers.pool import GlobalAveragePool
from everlearn.nets.layers.renorm import Renorm
from everlearn.nets.layers.stem import Stem
from everlearn.nets.precision import eval_mode
from everlearn.nets.seeded import seeded

Shape = tuple[int, int, int]
_WIDE = 256


class SplitNet(nn.Module):
    """A lower half, which is frozen sooner or later, and an upper half, which goes on learning.

    Attributes:
        lower: images (B, C, H, W) to latents (B, *latent_shape), none below 0; or Identity.
        upper: latents to features (B, width).
    """

    def __init__(self, lower: nn.Module, upper: nn.Module, latent_shape: Shape, width: int) -> None:
        """Combine two halves."""
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.latent_shape = latent_shape
        self.width = width

    def features(self, images: Tensor) -> Tensor:
        """(B, width)."""
        out: Tensor = self.upper(self.lower(images))
        return out


class SplitBuilder(NamedTuple):
    """How to build both halves of a net.

    Attributes:
        lower: builds the lower half for a number of image channels.
        upper: builds the upper half; it gets the shape of images, which may be latents.
        latent_channels: inputs with this many channels are taken for latents; None: any.
        width: number of features.
    """

    lower: Callable[[int], nn.Module]
    upper: Callable[[Shape], nn.Module]
    latent_channels: int | None
    width: int


def build_split_net(name: str, channels: int, size: int, seed: int) -> SplitNet:
    """Build a net with weights determined by the seed; torch's generator is not advanced.

    Images with as many channels as the net's latents are latents: the lower half is Identity.
    """
    if name not in SPLIT_NETS:
        raise ValueError(f"unknown split net {name!r}; known: {', '.join(SPLIT_NETS)}")
    builder = SPLIT_NETS[name]
    with seeded(seed):
        # The upper half comes first: its weights do not depend on whether there is a lower one.
        upper = builder.upper((channels, size, size))
        given = channels == builder.latent_channels
        lower = nn.Identity() if given else builder.lower(channels)
    return SplitNet(lower, upper, _latent_shape(lower, channels, size), builder.width)


def _latent_shape(lower: nn.Module, channels: int, size: int) -> Shape:
    with eval_mode(lower):
        _, depth, height, width = lower(torch.zeros(1, channels, size, size)).shape
    return depth, height, width


def _linear(width: int) -> SplitBuilder:
    """One layer over given latents."""
    return SplitBuilder(
        lambda channels: nn.Identity(),
        lambda shape: nn.Sequential(nn.Flatten(), nn.Linear(prod(shape), width), nn.ReLU()),
        None,
        width,
    )


def _convnet_lower(channels: int) -> nn.Module:
    widths = convnet.WIDTHS[:3]
    strides = convnet.POOLED_STRIDES[:3]
    return nn.Sequential(*convnet.conv_layers(channels, widths, strides))


def _convnet_upper(shape: Shape) -> nn.Module:
    widths = convnet.WIDTHS[3:]
    strides = convnet.POOLED_STRIDES[3:]
    layers = convnet.conv_layers(convnet.WIDTHS[2], widths, strides, Renorm)
    return nn.Sequential(*layers, GlobalAveragePool())


def _resnet_lower(channels: int) -> nn.Module:
    net = nn.Sequential(Stem(channels), *resnet.stages(resnet.WIDTHS[0], resnet.WIDTHS[:3]))
    resnet.draw_weights(net)
    return net


def _resnet_upper(shape: Shape) -> nn.Module:
    blocks = resnet.stages(resnet.WIDTHS[2], resnet.WIDTHS[3:], 2, Renorm)
    net = nn.Sequential(*blocks, GlobalAveragePool())
    resnet.draw_weights(net)
    return net


SPLIT_NETS: dict[str, SplitBuilder] = {
    "mlp": _linear(mlp.WIDTH),
    "mlp-wide": _linear(_WIDE),
    "convnet-pooled": SplitBuilder(
        _convnet_lower, _convnet_upper, convnet.WIDTHS[2], convnet.WIDTHS[3]
    ),
    "resnet18": SplitBuilder(_resnet_lower, _resnet_upper, resnet.WIDTHS[2], resnet.WIDTHS[3]),
    "resnet18-slim": SplitBuilder(
        slim.slim_lower, lambda shape: slim.slim_upper(), slim.WIDTHS[2], slim.WIDTHS[3]
    ),
    "mobilenetv2": SplitBuilder(
        mobilenet.mobilenet_lower,
        lambda shape: mobilenet.mobilenet_upper(),
        mobilenet.LATENT_CHANNELS,
        mobilenet.WIDTH,
    ),
}
