"""ResNet-18 at half its widths, split into two halves, for images of about 64 pixels."""

from __future__ import annotations

from torch import nn

from everlearn.nets.layers.norm import Norm
from everlearn.nets.layers.pool import GlobalAveragePool
from everlearn.nets.layers.renorm import Renorm
from everlearn.nets.resnet import draw_weights, stages

WIDTHS = (32, 64, 128, 256)


def slim_lower(channels: int) -> nn.Sequential:
    """Images of 64 pixels to latents of 128 x 4 x 4: a stem, three stages and a 2 x 2 average pool."""
    stem = (nn.Conv2d(channels, WIDTHS[0], 3, 2, 1, bias=False), Norm(WIDTHS[0]))
    # ceil_mode: images of a few pixels have latents, too.
    net = nn.Sequential(*stem, *stages(WIDTHS[0], WIDTHS[:3]), nn.AvgPool2d(2, ceil_mode=True))
    draw_weights(net)
    return net


def slim_upper() -> nn.Sequential:
    """Latents to 256 features: the fourth stage and global average pooling."""
    net = nn.Sequential(*stages(WIDTHS[2], WIDTHS[3:], 2, Renorm), GlobalAveragePool())
    draw_weights(net)
    return net
