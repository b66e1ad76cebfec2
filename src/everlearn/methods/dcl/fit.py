"""Fitting exemplars to an image, from the map that the net tells: the best fit names the class.

The nearest exemplars are drawn into the image and moved by Gauss-Newton steps (Lucas and Kanade 1981)
until they lie on it. Compared there, an image and its exemplar differ by the rounding of pixels alone,
whatever the scale of the image and the small error of the net.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from everlearn.memory import Exemplars, Found
from everlearn.memory.search import first, full_precision
from everlearn.warp import compose, invert, normalise, similar

_STEPS = 2
# Of the mean curvature: keeps a step finite where an exemplar is symmetric or plain.
_RIDGE = 1e-3
# Numbers in a group of pairs that are fitted at once; groups are full, so that bits do not depend on them.
_NUMBERS = {"cpu": 2**17, "cuda": 2**25}


@torch.no_grad()
def match(images: Tensor, maps: Tensor, memory: Exemplars, k: int, candidates: int) -> Found:
    """Find the k exemplars that fit images best, among so many that are nearest in canonical form.

    Distances are mean squared differences in the image.
    """
    maps = similar(maps)
    near = memory.search(normalise(images, maps), max(k, candidates))
    labels = near.labels.flatten()
    rows = torch.arange(len(images), device=images.device).repeat_interleave(near.labels.shape[1])
    size = max(1, _NUMBERS[images.device.type] // images.shape[1:].numel())
    short = -len(labels) % size
    parts = (pad(rows, (0, short)), pad(labels, (0, short), value=-1))
    groups = zip(*(torch.split(part, size) for part in parts), strict=True)
    with full_precision(images.device):
        errors = [_fit_pairs(images, row, memory.pictures(label), maps) for row, label in groups]
    distances = torch.cat(errors)[: len(labels)].reshape(near.labels.shape)
    return first(Found(near.labels, distances.masked_fill(near.labels < 0, torch.inf)), k)


def _fit_pairs(images: Tensor, rows: Tensor, exemplars: Tensor, maps: Tensor) -> Tensor:
    """Fit exemplars (P, C, H, W) to the images (P,) named: plainly, or by one kernel on a GPU."""
    if not images.is_cuda:
        return fit(images[rows], exemplars, maps[rows])
    from everlearn.methods.dcl import fit_kernel

    return fit_kernel.fit(images, rows, exemplars, invert(maps)[rows], _STEPS, _RIDGE)


def fit(images: Tensor, exemplars: Tensor, maps: Tensor, steps: int = _STEPS) -> Tensor:
    """The least mean squared differences (B,) between images and exemplars that are moved onto them.

    Args:
        exemplars: (B, C, H, W) uint8 or float, one for each image.
        maps: (B, 2, 3), from exemplar to image, as well as they are known.
        steps: how many times they are improved.
    """
    if exemplars.dtype == torch.uint8:
        exemplars = exemplars.float() / 255.0
    back = invert(maps)
    # Pixels are from 0 to 1, so no difference is greater; a fit that fails is nan and is passed over.
    least = torch.ones(len(images), device=images.device)
    for step in range(steps + 1):
        drawn = normalise(exemplars, back)
        least = torch.fmin(least, (images - drawn).square().mean((1, 2, 3)))
        if step < steps:
            back = compose(back, improve(images, drawn))
    return least


def improve(images: Tensor, drawn: Tensor) -> Tensor:
    """One Gauss-Newton step: the similarities (B, 2, 3) that bring what was drawn nearer to the images."""
    to_x, to_y = slopes(drawn)
    y, x = (part.to(drawn) for part in centres(*drawn.shape[2:]))
    # How a pixel changes when the picture grows, turns, and moves along x and y: (B, 4, C * H * W).
    ways = (to_x * x + to_y * y, to_y * x - to_x * y, to_x, to_y)
    changes = torch.stack([way.flatten(1) for way in ways], 1)
    curve = changes @ changes.mT
    weight = _RIDGE * curve.diagonal(dim1=1, dim2=2).mean(1) + 1e-12
    curve = curve + weight[:, None, None] * torch.eye(4, device=curve.device)
    pull = changes @ (images - drawn).flatten(1)[..., None]
    grow, turn, right, down = torch.linalg.solve_ex(curve, pull)[0].squeeze(2).unbind(1)
    rows = (1 + grow, -turn, right, turn, 1 + grow, down)
    return torch.stack(rows, 1).reshape(-1, 2, 3)


def slopes(images: Tensor) -> tuple[Tensor, Tensor]:
    """How images change along x and y, from -1 to 1 over the whole image: central differences."""
    height, width = images.shape[2:]
    wide = pad(images, (1, 1, 1, 1), mode="replicate")
    to_x = (wide[:, :, 1:-1, 2:] - wide[:, :, 1:-1, :-2]) * (width / 4)
    to_y = (wide[:, :, 2:, 1:-1] - wide[:, :, :-2, 1:-1]) * (height / 4)
    return to_x, to_y


def centres(height: int, width: int) -> tuple[Tensor, Tensor]:
    """Centres of pixels, y (H, 1) and x (W,), from -1 to 1."""
    y, x = ((2 * torch.arange(side) + 1) / side - 1 for side in (height, width))
    return y[:, None], x
