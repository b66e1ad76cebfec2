"""Nets by name."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from everlearn.nets.convnet import ConvNet
from everlearn.nets.layers.class_head import ClassHead
from everlearn.nets.mlp import MLP
from everlearn.nets.resnet import ResNet18
from everlearn.nets.seeded import seeded

Builder = Callable[[int, int, int], nn.Module]

NETS: dict[str, Builder] = {
    "resnet18": lambda channels, outputs, size: ResNet18(channels, outputs),
    "resnet18-small": lambda channels, outputs, size: ResNet18(channels, outputs, "small"),
    "convnet": lambda channels, outputs, size: ConvNet(channels, outputs, size),
    "convnet-pooled": lambda channels, outputs, size: ConvNet(channels, outputs, size, pooled=True),
    "mlp": lambda channels, outputs, size: MLP(channels * size * size, outputs),
}


def build_net(name: str, channels: int, outputs: int, size: int, seed: int) -> nn.Module:
    """Build a net with weights determined by the seed; torch's generator is not advanced."""
    with seeded(seed):
        return _builder(name)(channels, outputs, size)


def build_classifier(name: str, channels: int, classes: int, size: int, seed: int) -> nn.Module:
    """Build a net with a `ClassHead`; the weights of the first classes are the same for any number."""
    with seeded(seed):
        net = _builder(name)(channels, 1, size)
        net.head = ClassHead(net.width, classes)  # type: ignore[arg-type]
    return net


def _builder(name: str) -> Builder:
    if name not in NETS:
        raise ValueError(f"unknown net {name!r}; known: {', '.join(NETS)}")
    return NETS[name]
