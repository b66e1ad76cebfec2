"""ResNet-18 at half its widths, in two halves, for images of about 64 pixels."""

from __future__ import annotations

from torch import nn

from everlearn.nets.norm import Norm
from everlearn.nets.pool import Pool
from everlearn.nets.renorm import Renorm
from everlearn.nets.resnet import draw_weights, stages

WIDTHS = (32, 64, 128, 256)


def slim_lower(channels: int) -> nn.Sequential:
    """Images of 64 pixels to latents of 128 x 4 x 4: a stem, three stages and a pool of 2 x 2."""
    stem = (nn.Conv2d(channels, WIDTHS[0], 3, 2, 1, bias=False), Norm(WIDTHS[0]))
    # Rounded up, so that images of a few pixels have latents, too.
    net = nn.Sequential(*stem, *stages(WIDTHS[0], WIDTHS[:3]), nn.AvgPool2d(2, ceil_mode=True))
    draw_weights(net)
    return net


def slim_upper() -> nn.Sequential:
    """Latents to 256 features: the fourth stage, and the mean over all places."""
    net = nn.Sequential(*stages(WIDTHS[2], WIDTHS[3:], 2, Renorm), Pool())
    draw_weights(net)
    return net
