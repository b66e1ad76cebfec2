"""Nets in two halves, by their names: replayed latents lie between the halves."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import NamedTuple

import torch
from torch import Tensor, nn

from everlearn.nets import convnet, mlp, mobilenet, resnet, slim
from everlearn.nets.fast import evaluating
from everlearn.nets.pool import Pool
from everlearn.nets.renorm import Renorm
from everlearn.nets.seeded import seeded
from everlearn.nets.stem import Stem

Shape = tuple[int, int, int]
WIDE = 256


class Halves(nn.Module):
    """A lower half, which is frozen sooner or later, and an upper one, which goes on learning.

    Attributes:
        lower: images (B, C, H, W) to latents (B, *shape), none below 0; or Identity.
        upper: latents to features (B, width).
        shape: of a latent.
    """

    def __init__(self, lower: nn.Module, upper: nn.Module, shape: Shape, width: int) -> None:
        """Keep both."""
        super().__init__()
        self.lower, self.upper = lower, upper
        self.shape, self.width = shape, width

    def features(self, images: Tensor) -> Tensor:
        """(B, width)."""
        out: Tensor = self.upper(self.lower(images))
        return out


class Plan(NamedTuple):
    """How both halves of a net are made.

    Attributes:
        lower: makes the lower half, of the number of channels that images have.
        upper: makes the upper half; it is told the shape of images, in case they are latents.
        latent: channels of a latent, by which ready latents are known; None for any.
        width: number of features.
    """

    lower: Callable[[int], nn.Module]
    upper: Callable[[Shape], nn.Module]
    latent: int | None
    width: int


def build_halves(name: str, channels: int, size: int, seed: int) -> Halves:
    """Build a net whose weights follow from the seed; torch's own generator is left as it was.

    Images with as many channels as the net's latents are latents: the lower half is Identity.
    """
    if name not in HALVES:
        raise ValueError(f"unknown net in two halves {name!r}; known: {', '.join(HALVES)}")
    plan = HALVES[name]
    with seeded(seed):
        # The upper half comes first: its weights are the same whether or not latents are ready.
        upper = plan.upper((channels, size, size))
        lower = nn.Identity() if channels == plan.latent else plan.lower(channels)
    return Halves(lower, upper, _measure(lower, channels, size), plan.width)


def _measure(lower: nn.Module, channels: int, size: int) -> Shape:
    """The shape of a latent."""
    with evaluating(lower):
        _, count, height, width = lower(torch.zeros(1, channels, size, size)).shape
    return count, height, width


def _flat(width: int) -> Plan:
    """One layer over ready latents."""
    return Plan(
        lambda channels: nn.Identity(),
        lambda shape: nn.Sequential(nn.Flatten(), nn.Linear(prod(shape), width), nn.ReLU()),
        None,
        width,
    )


def _convnet_lower(channels: int) -> nn.Module:
    return nn.Sequential(*convnet.layers(channels, convnet.WIDTHS[:3], convnet.POOLED_STRIDES[:3]))


def _convnet_upper(shape: Shape) -> nn.Module:
    widths, strides = convnet.WIDTHS[3:], convnet.POOLED_STRIDES[3:]
    return nn.Sequential(*convnet.layers(convnet.WIDTHS[2], widths, strides, Renorm), Pool())


def _resnet_lower(channels: int) -> nn.Module:
    net = nn.Sequential(Stem(channels), *resnet.stages(resnet.WIDTHS[0], resnet.WIDTHS[:3]))
    resnet.draw_weights(net)
    return net


def _resnet_upper(shape: Shape) -> nn.Module:
    net = nn.Sequential(*resnet.stages(resnet.WIDTHS[2], resnet.WIDTHS[3:], 2, Renorm), Pool())
    resnet.draw_weights(net)
    return net


HALVES: dict[str, Plan] = {
    "mlp": _flat(mlp.WIDTH),
    "mlp-wide": _flat(WIDE),
    "convnet-pooled": Plan(_convnet_lower, _convnet_upper, convnet.WIDTHS[2], convnet.WIDTHS[3]),
    "resnet18": Plan(_resnet_lower, _resnet_upper, resnet.WIDTHS[2], resnet.WIDTHS[3]),
    "resnet18-slim": Plan(
        slim.slim_lower, lambda shape: slim.slim_upper(), slim.WIDTHS[2], slim.WIDTHS[3]
    ),
    "mobilenetv2": Plan(
        mobilenet.mobilenet_lower,
        lambda shape: mobilenet.mobilenet_upper(),
        mobilenet.LATENT_CHANNELS,
        mobilenet.WIDTH,
    ),
}
