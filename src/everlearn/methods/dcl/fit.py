"""Image registration: fit exemplars to an image, from the predicted map on; the best fit is the class.

The nearest exemplars are drawn into the image and aligned by Gauss-Newton steps (Lucas and Kanade 1981).
Compared in place, an image and its exemplar differ only by the rounding of pixels, whatever the scale of
the image and the error of the net. Where no exemplar fits much better than the next one, the map of the
best one is a better start: search and fit are repeated from there.

Residuals are divided by their expected size: an edge that is drawn half a pixel off changes a pixel by half
the contrast of the edge. Without these weights the edge of the highest contrast decides alone.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from everlearn.core.validate import check_int
from everlearn.memory import Exemplars, SearchResult
from everlearn.memory.search import full_precision, nearest_first
from everlearn.render.affine import compose, invert, nearest_similarity, transform_images

_STEPS = 2
_ROUNDS = 3
_CLEAR_RATIO = (
    0.5  # an image is settled where the best error is below this share of the second best
)
# Of the mean curvature: keeps a step finite where an exemplar is symmetric or uniform.
_RIDGE = 1e-3
# Change of brightness per pixel at which the expected error of a drawn edge equals all other errors.
EDGE_CONTRAST = 0.15
# Numbers in a group of pairs that are fitted at once. On a CPU groups are always full, so that no bit
# depends on their size; the GPU kernel fits each pair on its own.
_NUMBERS = {"cpu": 2**17, "cuda": 2**25}


class FitResult(NamedTuple):
    """How well exemplars fit images.

    Attributes:
        errors: (B,) the smallest mean squared errors, weighted by `edge_weights`.
        maps: (B, 2, 3) from exemplar to image, where these were found.
    """

    errors: Tensor
    maps: Tensor


@torch.no_grad()
def match(
    images: Tensor,
    maps: Tensor,
    memory: Exemplars,
    k: int,
    candidates: int,
    edge_contrast: float = EDGE_CONTRAST,
) -> SearchResult:
    """Find the k exemplars that fit images best, among the nearest candidates in canonical pose.

    Distances are weighted mean squared errors in the image. All k come from the round with the best fit.
    """
    check_int(k, "k", 1, 1000)
    count = max(k, 2)
    candidates = max(count, candidates)
    weights = edge_weights(images, edge_contrast)
    maps = nearest_similarity(maps)
    found, maps = _search_and_fit(images, weights, maps, memory, count, candidates)
    improved = torch.ones(len(images), dtype=torch.bool, device=images.device)
    for _ in range(_ROUNDS - 1):
        best, second = found.distances[:, :2].unbind(1)
        # Images that the last round did not improve would start from the same map again. This is the only
        # place where the device is waited for.
        rows = (improved & (best > _CLEAR_RATIO * second)).nonzero().squeeze(1)
        if not len(rows):
            break
        repeated, better = _search_and_fit(
            images[rows], weights[rows], maps[rows], memory, count, candidates
        )
        gains = repeated.distances[:, 0] < best[rows]
        improved = torch.zeros_like(improved).index_put((rows,), gains)
        _replace_rows(found.labels, rows, repeated.labels, gains[:, None])
        _replace_rows(found.distances, rows, repeated.distances, gains[:, None])
        _replace_rows(maps, rows, better, gains[:, None, None])
    return SearchResult(*(part[:, :k] for part in found))


def _replace_rows(old: Tensor, rows: Tensor, new: Tensor, condition: Tensor) -> None:
    """Write new values to some rows where a condition holds, without a device sync."""
    old[rows] = torch.where(condition, new, old[rows])


def _search_and_fit(
    images: Tensor, weights: Tensor, maps: Tensor, memory: Exemplars, count: int, candidates: int
) -> tuple[SearchResult, Tensor]:
    """Fit the nearest exemplars under maps; return the best `count`, and the map of the best one."""
    near = memory.search(transform_images(images, maps), candidates).labels
    fitted = _fit_each(images, weights, maps, memory, near)
    errors = fitted.errors.reshape(near.shape).masked_fill(near < 0, torch.inf)
    chosen = errors.argmin(1) + candidates * torch.arange(len(images), device=images.device)
    return nearest_first(SearchResult(near, errors), count), fitted.maps[chosen]


def _fit_each(
    images: Tensor, weights: Tensor, maps: Tensor, memory: Exemplars, labels: Tensor
) -> FitResult:
    """Fit exemplars (B, K) to each image, in groups of pairs."""
    rows = torch.arange(len(images), device=images.device).repeat_interleave(labels.shape[1])
    pairs = [rows, labels.flatten()]
    size = max(1, _NUMBERS[images.device.type] // images.shape[1:].numel())
    if not images.is_cuda:
        pairs = [pad(part, (0, -len(rows) % size), value=-1) for part in pairs]
    groups = zip(*(torch.split(part, size) for part in pairs), strict=True)
    with full_precision(images.device):
        fits = [
            _fit_pairs(images, weights, row, memory.gather(label), maps) for row, label in groups
        ]
    return FitResult(*(torch.cat(part)[: len(rows)] for part in zip(*fits, strict=True)))


def _fit_pairs(
    images: Tensor, weights: Tensor, rows: Tensor, exemplars: Tensor, maps: Tensor
) -> FitResult:
    """Fit exemplars (P, C, H, W) to images[rows], rows (P,): in PyTorch, or by one kernel on a GPU."""
    if not images.is_cuda:
        return fit(images[rows], weights[rows], exemplars, maps[rows])
    from everlearn.methods.dcl import fit_kernel

    return FitResult(*fit_kernel.fit(images, weights, rows, exemplars, maps, _STEPS, _RIDGE))


def fit(
    images: Tensor, weights: Tensor, exemplars: Tensor, maps: Tensor, steps: int = _STEPS
) -> FitResult:
    """Align exemplars with images.

    Args:
        weights: (B, C, H, W) of the residuals, such as `edge_weights(images)`.
        exemplars: (B, C, H, W) uint8 or float, one for each image.
        maps: (B, 2, 3), from exemplar to image, the first guess.
        steps: number of Gauss-Newton steps.
    """
    if exemplars.dtype == torch.uint8:
        exemplars = exemplars.float() / 255.0
    inverse = best_inverse = invert(maps)
    best_errors = torch.full((len(images),), torch.inf, device=images.device)
    for step in range(steps + 1):
        drawn = transform_images(exemplars, inverse)
        errors = (weights * (images - drawn)).square().mean((1, 2, 3))
        better = errors < best_errors  # False where an error is NaN
        best_inverse = torch.where(better[:, None, None], inverse, best_inverse)
        best_errors = torch.where(better, errors, best_errors)
        if step < steps:
            inverse = compose(inverse, gauss_newton_step(images, weights, drawn))
    return FitResult(best_errors, invert(best_inverse))


def gauss_newton_step(images: Tensor, weights: Tensor, drawn: Tensor) -> Tensor:
    """Return the similarities (B, 2, 3) that bring drawn exemplars nearer to images, to first order."""
    to_x, to_y = image_gradients(drawn)
    y, x = (part.to(drawn) for part in pixel_centers(*drawn.shape[2:]))
    # The Jacobian: how each pixel changes with scale, angle, x and y, (B, 4, C * H * W).
    columns = (to_x * x + to_y * y, to_y * x - to_x * y, to_x, to_y)
    jacobian = torch.stack([(weights * column).flatten(1) for column in columns], 1)
    hessian = jacobian @ jacobian.mT
    ridge = _RIDGE * hessian.diagonal(dim1=1, dim2=2).mean(1) + 1e-12
    hessian = hessian + ridge[:, None, None] * torch.eye(4, device=hessian.device)
    residual = jacobian @ (weights * (images - drawn)).flatten(1)[..., None]
    solution = torch.linalg.solve_ex(hessian, residual)[0]
    scale, angle, right, down = solution.squeeze(2).unbind(1)
    entries = (1 + scale, -angle, right, angle, 1 + scale, down)
    return torch.stack(entries, 1).reshape(-1, 2, 3)


def edge_weights(images: Tensor, contrast: float = EDGE_CONTRAST) -> Tensor:
    """Return the weights of residuals (B, C, H, W), 1 on uniform areas and less the steeper an edge is.

    The variance of a residual is taken to be constant plus that of an edge drawn at a random place within
    its pixel, which grows with the square of the image gradient.
    """
    height, width = images.shape[2:]
    to_x, to_y = image_gradients(images)
    per_pixel = (to_x * (2 / width)).square() + (to_y * (2 / height)).square()
    return (1 + per_pixel / contrast**2).rsqrt()


def image_gradients(images: Tensor) -> tuple[Tensor, Tensor]:
    """Return the derivatives of images along x and y, which run from -1 to 1: central differences."""
    height, width = images.shape[2:]
    padded = pad(images, (1, 1, 1, 1), mode="replicate")
    to_x = (padded[:, :, 1:-1, 2:] - padded[:, :, 1:-1, :-2]) * (width / 4)
    to_y = (padded[:, :, 2:, 1:-1] - padded[:, :, :-2, 1:-1]) * (height / 4)
    return to_x, to_y


def pixel_centers(height: int, width: int) -> tuple[Tensor, Tensor]:
    """Return the centres of pixels, y (H, 1) and x (W,), from -1 to 1."""
    y, x = ((2 * torch.arange(side) + 1) / side - 1 for side in (height, width))
    return y[:, None], x
