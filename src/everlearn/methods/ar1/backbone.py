"""The split net of AR1: new, or from a file of pre-trained weights."""

from __future__ import annotations

from torch import nn

from everlearn.methods.ar1.settings import Settings
from everlearn.nets.extractor import load_extractor
from everlearn.nets.split_net import SplitNet, build_split_net
from everlearn.stream import TaskStream


def build_backbone(settings: Settings, stream: TaskStream) -> SplitNet:
    """Return the net for a stream, with the weights of `settings.weights` or those of the stream's seed."""
    canvas = stream.canvas
    if not settings.weights:
        return build_split_net(settings.net, canvas.channels, canvas.size, stream.seed)
    net, about = load_extractor(settings.weights)
    if tuple(canvas.shape) == net.latent_shape:
        net.lower = (
            nn.Identity()
        )  # the stream shows the latents that this lower half makes of images
        return net
    image_shape = (about["channels"], about["size"], about["size"])
    if tuple(canvas.shape) != image_shape:
        raise ValueError(
            f"{settings.weights} is for images {image_shape} or latents {net.latent_shape}, found a "
            f"stream of {tuple(canvas.shape)}; pre-train one for it: everlearn pretrain --net"
        )
    return net
