"""Fitting exemplars to an image, from the map that the net tells: the best fit names the class.

The nearest exemplars are drawn into the image and moved by Gauss-Newton steps (Lucas and Kanade 1981)
until they lie on it. Compared there, an image and its exemplar differ by the rounding of pixels alone,
whatever the scale of the image and the error of the net. Where no exemplar fits much better than the
next, the map of the best one is a better start: the nearest are looked up and fitted again.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from everlearn.border import check_whole
from everlearn.memory import Exemplars, Found
from everlearn.memory.search import first, full_precision
from everlearn.warp import compose, invert, normalise, similar

_STEPS = 2
_ROUNDS = 3
_SETTLED = 0.5  # of the next best difference
# Of the mean curvature: keeps a step finite where an exemplar is symmetric or plain.
_RIDGE = 1e-3
# Numbers in a group of pairs that are fitted at once. On a CPU groups are full, so that no bit depends on
# their size; the kernel of a GPU takes pair by pair.
_NUMBERS = {"cpu": 2**17, "cuda": 2**25}


class Fitted(NamedTuple):
    """How well exemplars fit images.

    Attributes:
        errors: (B,) the least mean squared differences.
        maps: (B, 2, 3) from exemplar to image, where these were found.
    """

    errors: Tensor
    maps: Tensor


@torch.no_grad()
def match(images: Tensor, maps: Tensor, memory: Exemplars, k: int, candidates: int) -> Found:
    """Find the k exemplars that fit images best, among so many that are nearest in canonical form.

    Distances are mean squared differences in the image. All k are of one search, the one with the best fit.
    """
    check_whole(k, "k", 1, 1000)
    count = max(k, 2)
    found, maps = _look(images, similar(maps), memory, count, max(count, candidates))
    rows = torch.arange(len(images), device=images.device)
    for _ in range(_ROUNDS - 1):
        best, second = found.distances[rows, 0], found.distances[rows, 1]
        rows = rows[best > _SETTLED * second]
        if not len(rows):
            break
        again, better = _look(images[rows], maps[rows], memory, count, max(count, candidates))
        gains = again.distances[:, 0] < found.distances[rows, 0]
        rows = rows[gains]  # the others would only be looked up from the same map again
        found.labels[rows], found.distances[rows] = again.labels[gains], again.distances[gains]
        maps[rows] = better[gains]
    return Found(*(part[:, :k] for part in found))


def _look(
    images: Tensor, maps: Tensor, memory: Exemplars, count: int, candidates: int
) -> tuple[Found, Tensor]:
    """Fit the exemplars that are nearest through maps; the best few, and the map of the best one."""
    near = memory.search(normalise(images, maps), candidates).labels
    fitted = _fit_each(images, maps, memory, near)
    errors = fitted.errors.reshape(near.shape).masked_fill(near < 0, torch.inf)
    chosen = errors.argmin(1) + candidates * torch.arange(len(images), device=images.device)
    return first(Found(near, errors), count), fitted.maps[chosen]


def _fit_each(images: Tensor, maps: Tensor, memory: Exemplars, labels: Tensor) -> Fitted:
    """Fit exemplars (B, K) to each image, in groups."""
    rows = torch.arange(len(images), device=images.device).repeat_interleave(labels.shape[1])
    size = max(1, _NUMBERS[images.device.type] // images.shape[1:].numel())
    short = 0 if images.is_cuda else -len(rows) % size
    parts = (pad(rows, (0, short)), pad(labels.flatten(), (0, short), value=-1))
    groups = zip(*(torch.split(part, size) for part in parts), strict=True)
    with full_precision(images.device):
        fits = [_fit_pairs(images, row, memory.pictures(label), maps) for row, label in groups]
    return Fitted(*(torch.cat(part)[: len(rows)] for part in zip(*fits, strict=True)))


def _fit_pairs(images: Tensor, rows: Tensor, exemplars: Tensor, maps: Tensor) -> Fitted:
    """Fit exemplars (P, C, H, W) to the images (P,) named: plainly, or by one kernel on a GPU."""
    if not images.is_cuda:
        return fit(images[rows], exemplars, maps[rows])
    from everlearn.methods.dcl import fit_kernel

    errors, back = fit_kernel.fit(images, rows, exemplars, invert(maps)[rows], _STEPS, _RIDGE)
    return Fitted(errors, invert(back))


def fit(images: Tensor, exemplars: Tensor, maps: Tensor, steps: int = _STEPS) -> Fitted:
    """Move exemplars onto images.

    Args:
        exemplars: (B, C, H, W) uint8 or float, one for each image.
        maps: (B, 2, 3), from exemplar to image, as well as they are known.
        steps: how many times they are improved.
    """
    if exemplars.dtype == torch.uint8:
        exemplars = exemplars.float() / 255.0
    back = best = invert(maps)
    least = torch.full((len(images),), torch.inf, device=images.device)
    for step in range(steps + 1):
        drawn = normalise(exemplars, back)
        errors = (images - drawn).square().mean((1, 2, 3))
        better = errors < least  # never where an error is no number
        best = torch.where(better[:, None, None], back, best)
        least = torch.where(better, errors, least)
        if step < steps:
            back = compose(back, improve(images, drawn))
    return Fitted(least, invert(best))


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
