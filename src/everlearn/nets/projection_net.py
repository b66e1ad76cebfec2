"""A backbone with a projector of two layers, which embeds images as unit vectors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from everlearn.nets.build import build_net
from everlearn.nets.layers.head import Head
from everlearn.nets.precision import eval_mode, forward_pass
from everlearn.nets.seeded import seeded

_CHUNK = 2**22  # elements of images per pass: 1024 images of 64 x 64
_WIDE = 512  # of ResNet-18, which gets 128 outputs; narrower nets get 64


class ProjectionNet(nn.Module):
    """Features, a linear layer of their width, ReLU, and a linear layer in float32.

    Args:
        backbone: a net of NETS; its head is removed.
    """

    def __init__(self, backbone: Any) -> None:
        """Start the projector from torch's default initialisation."""
        super().__init__()
        width = int(backbone.width)
        backbone.head = nn.Identity()
        self.backbone = backbone
        last = Head(width, 128 if width >= _WIDE else 64)
        self.projector = nn.Sequential(nn.Linear(width, width), nn.ReLU(), last)

    def forward(self, images: Tensor) -> Tensor:
        """(B, outputs), not normalised."""
        out: Tensor = self.projector(self.backbone.features(images))
        return out


def build_projection_net(name: str, channels: int, size: int, seed: int) -> ProjectionNet:
    """Build a net with weights determined by the seed; torch's generator is not advanced."""
    backbone = build_net(name, channels, 1, size, seed)
    with seeded(seed ^ 1):  # the projector must not repeat the draws of the first layers
        return ProjectionNet(backbone)


def embed(net: nn.Module, images: Tensor) -> Tensor:
    """Return unit vectors (N, outputs) of images, uint8 or float, a chunk at a time."""
    size = max(1, _CHUNK // images.shape[1:].numel())
    with eval_mode(net):
        chunks = [forward_pass(net, to_float(chunk)) for chunk in torch.split(images, size)]
        return normalize(torch.cat(chunks))


def to_float(images: Tensor) -> Tensor:
    """Convert uint8 images to 0 .. 1; float images stay as they are."""
    return images.float() / 255.0 if images.dtype == torch.uint8 else images
