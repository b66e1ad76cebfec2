"""A net that gives a picture a direction: a backbone and a projector of two layers, as one module."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from everlearn.nets import build_net, fast
from everlearn.nets.head import Head
from everlearn.nets.seeded import seeded

# Numbers of pictures that are looked at together: 1024 of 64 pixels.
_NUMBERS = 2**22
_WIDE = 512  # of ResNet-18, which gets 128 outputs; narrower nets get 64


class Projected(nn.Module):
    """Features, a linear layer as wide as they are, ReLU, a linear layer in float32.

    Args:
        backbone: a net of NETS; its own last layer is taken off.
    """

    def __init__(self, backbone: Any) -> None:
        """Start the projector from torch's own random weights."""
        super().__init__()
        width = int(backbone.width)
        backbone.head = nn.Identity()
        self.backbone = backbone
        last = Head(width, 128 if width >= _WIDE else 64)
        self.projector = nn.Sequential(nn.Linear(width, width), nn.ReLU(), last)

    def forward(self, images: Tensor) -> Tensor:
        """(B, outputs), of any length."""
        out: Tensor = self.projector(self.backbone.features(images))
        return out


def build_projected(name: str, channels: int, size: int, seed: int) -> Projected:
    """Build a net whose weights follow from the seed; torch's own generator is left as it was."""
    backbone = build_net(name, channels, 1, size, seed)
    with seeded(seed ^ 1):  # so that the projector does not repeat the numbers of the first layers
        return Projected(backbone)


def embed(net: nn.Module, pictures: Tensor) -> Tensor:
    """Unit vectors (N, outputs) of pictures, uint8 or float, some at a time."""
    size = max(1, _NUMBERS // pictures.shape[1:].numel())
    with fast.evaluating(net):
        parts = [fast.forward(net, to_float(part)) for part in torch.split(pictures, size)]
        return normalize(torch.cat(parts))


def to_float(pictures: Tensor) -> Tensor:
    """Pictures as a net takes them; uint8 becomes 0 .. 1."""
    return pictures.float() / 255.0 if pictures.dtype == torch.uint8 else pictures
