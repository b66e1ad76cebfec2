"""Exact nearest pictures: a matrix product chooses candidates, differences measure them.

Every sum behind a distance has a shape that depends on the picture's size and the device alone,
so the distance of a query to a picture has the same bits whatever else is asked or stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from everlearn.memory.checks import Shape
from everlearn.memory.slots import Block

Window = tuple[slice, slice]
# More candidates a block than are asked for. The answer is exact unless the product's rounding
# (about 1e-7 of a mean square) moves a picture by more places than these.
_SPARE = 6
# Queries are measured in groups of the least to the most, as many as hold this many numbers.
# A GPU is kept waiting by small ones; a CPU should not take long over one query.
_LEAST, _MOST, _NUMBERS = 64, 1024, 2**22


class Found(NamedTuple):
    """The nearest pictures, nearest first, ties to the smaller label.

    Attributes:
        labels: (B, k) int64; -1 where fewer than k are stored.
        distances: (B, k) float32, mean squared differences; inf where fewer than k are stored.
    """

    labels: Tensor
    distances: Tensor

    @property
    def novelty(self) -> Tensor:
        """d1 / d2 of the two nearest; 1 where both are 0, since nothing tells them apart."""
        first, second = self.distances[:, 0], self.distances[:, 1]
        return torch.where(second > 0, first / second, torch.ones_like(first))


class _Stored(NamedTuple):
    """A block made ready for the product: rows less 0.5, their squares, the order of labels."""

    block: Block
    rows: Tensor
    squares: Tensor
    ranks: Tensor


@torch.no_grad()
def nearest(blocks: Iterable[Block], queries: Tensor, k: int, part: Window) -> Found:
    """Find the k nearest pictures of each query (B, C, H, W), comparing a part of them."""
    groups = _group(comparable(queries, part))
    best = [_nothing(group, k) for group in groups]
    pixels = queries[:, :, *part].shape[1:].numel()
    with full_precision(queries.device):
        for block in blocks:
            stored = _prepare(block, part)
            for place, group in enumerate(groups):
                found = _measure(group, stored, k + _SPARE, part, pixels)
                both = (torch.cat(pair, 1) for pair in zip(best[place], found, strict=True))
                best[place] = first(Found(*both), k)
    return Found(*(torch.cat(parts)[: len(queries)] for parts in zip(*best, strict=True)))


def window(shape: Shape, crop: float | None) -> Window:
    """Rows and columns that are compared: every pixel that a central crop touches."""
    starts = (0 if crop is None else int(side / 2 - crop * side) for side in shape[1:])
    rows, columns = (
        slice(first, side - first) for first, side in zip(starts, shape[1:], strict=True)
    )
    return rows, columns


def comparable(pictures: Tensor, part: Window) -> Tensor:
    """The pixels of a part as float32 rows (N, D), uint8 over 255."""
    rows = pictures[:, :, *part].flatten(1)
    if rows.dtype == torch.uint8:
        # CUDA multiplies by the rounded inverse of a plain number; a tensor is divided by.
        rows = rows.float() / torch.full((), 255.0, device=rows.device)
    # Sums on CUDA start at 16-byte borders: without whole ones, bits would depend on the row.
    return pad(rows.float(), (0, -rows.shape[1] % 32))


@contextmanager
def full_precision(device: torch.device) -> Iterator[None]:
    """Multiply matrices in float32, without TF32, bfloat16 or autocast."""
    places = (torch.backends.cuda.matmul, torch.backends.mkldnn.matmul)  # type: ignore[attr-defined]
    before = [place.fp32_precision for place in places]
    try:
        for place in places:
            place.fp32_precision = "ieee"
        with torch.autocast(device.type, enabled=False):
            yield
    finally:
        for place, precision in zip(places, before, strict=True):
            place.fp32_precision = precision


def _group(rows: Tensor) -> tuple[Tensor, ...]:
    """Rows (B, D) as one or more groups (Q, D), the last filled up with zeros."""
    size = _LEAST if rows.device.type == "cpu" else _NUMBERS // rows.shape[1]
    size = min(max(size, _LEAST), _MOST)
    groups = max(-(-len(rows) // size), 1)
    return pad(rows, (0, 0, 0, groups * size - len(rows))).reshape(groups, size, -1).unbind()


def _nothing(group: Tensor, k: int) -> Found:
    labels = torch.full((len(group), k), -1, dtype=torch.int64, device=group.device)
    return Found(labels, torch.full((len(group), k), torch.inf, device=group.device))


def _prepare(block: Block, part: Window) -> _Stored:
    """Take 0.5 off, which lessens what cancels in the product; free slots lie infinitely far."""
    rows = comparable(block.pictures, part).sub_(0.5)
    squares = rows.square().sum(1).masked_fill(block.labels < 0, torch.inf)
    return _Stored(block, rows, squares, block.labels.argsort().argsort())


def _measure(group: Tensor, stored: _Stored, count: int, part: Window, pixels: int) -> Found:
    """Measure the nearest candidates of a block by the differences themselves."""
    slots = _candidates(group - 0.5, stored, min(count, len(stored.squares)))
    labels = stored.block.labels[slots]
    sums = [
        (group - comparable(stored.block.pictures[column], part)).square().sum(1)
        for column in slots.unbind(1)
    ]
    distances = torch.stack(sums, 1) / pixels
    return Found(labels, distances.masked_fill(labels < 0, torch.inf))


def _candidates(rows: Tensor, stored: _Stored, count: int) -> Tensor:
    """Slots (Q, count) with the smallest a.a + b.b - 2 a.b, ties to the smaller label."""
    products = torch.addmm(stored.squares, rows, stored.rows.T, alpha=-2)
    distances = (products + rows.square().sum(1, keepdim=True)).clamp(min=0)
    # The bits of floats that are not negative are ordered as the floats are.
    keys = (distances.view(torch.int32).to(torch.int64) << 32) + stored.ranks
    return keys.topk(count, dim=1, largest=False, sorted=False).indices


def first(found: Found, k: int) -> Found:
    """The k first, by distance and then by label."""
    labels, order = found.labels.sort(dim=1, stable=True)
    distances, order = found.distances.gather(1, order).sort(dim=1, stable=True)
    return Found(labels.gather(1, order)[:, :k], distances[:, :k])
