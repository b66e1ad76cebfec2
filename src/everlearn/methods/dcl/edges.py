"""Edge jitter: harden or blur the edges of images, in plain torch, and in one kernel on a GPU.

Images with hard edges have a jitter of their own: shapes shrink. The original package also fills every
pixel that the outline passes through, so its shapes are half a pixel larger on all sides than those that
are drawn by area coverage, and a net that saw only the former takes the latter for smaller ones.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, max_pool2d, pad

from everlearn.render.canvas import Canvas

_HALF_A_LEVEL = 0.5 / 255


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


def change_hard_edges(images: Tensor, edges: Tensor, background: Tensor) -> Tensor:
    """Harden images, then shrink their shapes by up to a pixel; (0, 0) leaves an image as it is.

    Args:
        images: (B, C, H, W).
        edges: (B, 2) threshold of each image, and how far its shape shrinks, from 0 to 1. At 0.5 the edge
            lies on the outline and is as soft as if it were drawn by area coverage.
        background: (C, 1, 1) its values.
    """
    threshold, amount = edges[:, :, None, None, None].unbind(1)
    hard = torch.where(threshold > 0, harden_shapes(images, threshold, background), images)
    return torch.lerp(hard, shrink(hard, background), amount)


def harden_shapes(images: Tensor, threshold: Tensor, background: Tensor) -> Tensor:
    """Set each pixel to the background, or to the colour of the shape around it, by its place between them.

    A lower threshold makes a shape larger, be it brighter or darker than the background. Where a bright and
    a dark part of it meet, a pixel is set to the nearer of both.
    """
    brightest, darkest = _extremes(images)
    above, below = brightest - background, background - darkest
    farthest = torch.where(above > below, brightest, darkest)
    is_shape = (images - background).abs() > threshold * (farthest - background).abs()
    outside = torch.where(is_shape, farthest, background)
    inside = torch.where(2 * images > brightest + darkest, brightest, darkest)
    return torch.where(torch.minimum(above, below) < _HALF_A_LEVEL, outside, inside)


def find_background(canvas: object, device: str) -> Tensor:
    """Return the background of a canvas with hard edges, (C, 1, 1)."""
    if not isinstance(canvas, Canvas) or not canvas.parity:
        raise ValueError(
            f"hard_edge_jitter needs sprites with hard edges, found {canvas!r}; give the stream "
            "Canvas(parity=True) (--parity), or leave hard_edge_jitter at 0"
        )
    return torch.from_numpy(canvas.levels.background / 255.0).float()[:, None, None].to(device)


def shrink(images: Tensor, background: Tensor) -> Tensor:
    """Set each pixel beside the background to the background: an erosion by one pixel."""
    distance = (images - background).abs().amax(1, keepdim=True)
    is_background = (distance < _HALF_A_LEVEL).to(images.dtype)
    return torch.where(max_pool2d(is_background, 3, 1, 1) > 0, background, images)


def harden(images: Tensor, threshold: Tensor) -> Tensor:
    """Set each pixel to the brightest or darkest value around it, by its place between the two.

    A toggle mapping (Kramer and Bruckner 1975): anti-aliased edges become hard, whatever the colours.
    """
    brightest, darkest = _extremes(images)
    is_bright = images - darkest > threshold * (brightest - darkest)
    return torch.where(is_bright, brightest, darkest)


def _extremes(images: Tensor) -> tuple[Tensor, Tensor]:
    """Return the brightest and the darkest value around each pixel, in each channel."""
    padded = pad(images, (1, 1, 1, 1), mode="replicate")
    return max_pool2d(padded, 3, 1), -max_pool2d(-padded, 3, 1)


def blur(images: Tensor) -> Tensor:
    """Smooth images with the binomial filter of 3 x 3 pixels, [1, 2, 1] / 4 along each axis."""
    return avg_pool2d(avg_pool2d(pad(images, (1, 1, 1, 1), mode="replicate"), 2, 1), 2, 1)
