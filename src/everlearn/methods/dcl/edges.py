"""Edge jitter: harden or blur the edges of images, in plain torch, and in one kernel on a GPU."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, max_pool2d, pad


def change_edges(images: Tensor, edges: Tensor) -> Tensor:
    """Harden or blur the edges of images; (0, 0) leaves an image as it is.

    Args:
        images: (B, C, H, W).
        edges: (B, 2) threshold and amount of blur of each image; an empty one leaves all as they are.
    """
    if len(edges) == 0:
        return images
    if images.is_cuda and images.dtype == torch.float32 and not images.requires_grad:
        from everlearn.methods.dcl import edges_kernel

        return edges_kernel.change_edges(images, edges)
    return change_edges_plain(images, edges)


def change_edges_plain(images: Tensor, edges: Tensor) -> Tensor:
    """Apply `change_edges` by torch."""
    threshold, amount = edges[:, :, None, None, None].unbind(1)
    hardened = torch.where(threshold > 0, harden(images, threshold), images)
    return torch.lerp(hardened, blur(hardened), amount)


def harden(images: Tensor, threshold: Tensor) -> Tensor:
    """Set each pixel to the brightest or darkest value around it, by its place between the two.

    A toggle mapping (Kramer and Bruckner 1975): anti-aliased edges become hard, whatever the colours.
    """
    padded = pad(images, (1, 1, 1, 1), mode="replicate")
    brightest = max_pool2d(padded, 3, 1)
    darkest = -max_pool2d(-padded, 3, 1)
    is_bright = images - darkest > threshold * (brightest - darkest)
    return torch.where(is_bright, brightest, darkest)


def blur(images: Tensor) -> Tensor:
    """Smooth images with the binomial filter of 3 x 3 pixels, [1, 2, 1] / 4 along each axis."""
    return avg_pool2d(avg_pool2d(pad(images, (1, 1, 1, 1), mode="replicate"), 2, 1), 2, 1)
