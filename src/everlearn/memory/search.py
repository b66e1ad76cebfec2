"""Exact nearest pictures: a matrix product chooses candidates, differences measure them.

Every sum behind a distance has a shape that depends on the picture's size and the device alone,
so the distance of a query to a picture has the same bits whatever else is asked or stored.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from everlearn.memory.checks import Shape
from everlearn.memory.slots import Block, Slots

Window = tuple[slice, slice]
# More candidates than are asked for. The answer is exact unless the product's rounding
# (about 1e-7 of a mean square) moves a picture by more places than these.
_SPARE = 6
# Queries are measured in groups of the least to the most, as many as hold this many numbers.
# A GPU is kept waiting by small ones; a CPU should not take long over one query.
_LEAST, _MOST, _NUMBERS = 64, 1024, 2**22
_BYTES = 2**27  # of pictures that are measured together
_MIDDLE = 128.0


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
    """A block made ready for the product.

    Attributes:
        rows: (S, D) pixels less 128, which are whole numbers: bfloat16 holds them on a GPU.
        squares: (S,) their sums of squares, infinite for free slots.
        ranks: (S,) the places of labels in their order.
    """

    labels: Tensor
    rows: Tensor
    squares: Tensor
    ranks: Tensor


class _Asked(NamedTuple):
    """A group of queries made ready for the product.

    Attributes:
        rows: (Q, D) as they are.
        parts: (P Q, D) which add up to 255 rows less 128: one part, or three in bfloat16 on a GPU.
        squares: (Q, 1) their sums of squares.
    """

    rows: Tensor
    parts: Tensor
    squares: Tensor


@torch.no_grad()
def nearest(slots: Slots, queries: Tensor, k: int, part: Window) -> Found:
    """Find the k nearest pictures of each query (B, C, H, W), comparing a part of them."""
    groups = [_ask(rows) for rows in _group(_cut(queries, part))]
    near = [_nothing(group.rows, min(k, len(slots.places)) + _SPARE) for group in groups]
    with full_precision(queries.device):
        for block in slots.blocks:
            stored = _prepare(block, part)
            for place, group in enumerate(groups):
                near[place] = _choose(near[place], group, stored)
    pixels = queries[:, :, *part].shape[1:].numel()
    found = []
    for group, chosen in zip(groups, near, strict=True):
        measured = _measure(group.rows, chosen.labels, slots, part, pixels)
        found.append(first(_join(_nothing(group.rows, k), measured), k))
    return Found(*(torch.cat(parts)[: len(queries)] for parts in zip(*found, strict=True)))


def window(shape: Shape, crop: float | None) -> Window:
    """Rows and columns that are compared: every pixel that a central crop touches."""
    starts = (0 if crop is None else int(side / 2 - crop * side) for side in shape[1:])
    rows, columns = (
        slice(first, side - first) for first, side in zip(starts, shape[1:], strict=True)
    )
    return rows, columns


def _cut(pictures: Tensor, part: Window) -> Tensor:
    """The pixels of a part as float32 rows (N, D); whole blocks of them, so that sums are alike."""
    rows = pictures[:, :, *part].flatten(1).float()
    return pad(rows, (0, -rows.shape[1] % 32))


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


def _join(one: Found, two: Found) -> Found:
    return Found(*(torch.cat(pair, 1) for pair in zip(one, two, strict=True)))


def _prepare(block: Block, part: Window) -> _Stored:
    """Take 128 off, which lessens what cancels in the product; free slots lie infinitely far."""
    rows = _cut(block.pictures, part).sub_(_MIDDLE)
    squares = rows.square().sum(1).masked_fill(block.labels < 0, torch.inf)
    rows = rows.to(torch.bfloat16) if rows.is_cuda else rows
    return _Stored(block.labels, rows, squares, block.labels.argsort().argsort())


def _ask(rows: Tensor) -> _Asked:
    """Take 128 off likewise. A float32 number is the sum of three in bfloat16."""
    rest = rows * 255.0 - _MIDDLE
    squares = rest.square().sum(1, keepdim=True)
    if not rows.is_cuda:
        return _Asked(rows, rest, squares)
    parts = []
    for _ in range(3):
        parts.append(rest.to(torch.bfloat16))
        rest = rest - parts[-1]
    return _Asked(rows, torch.cat(parts), squares)


def _choose(near: Found, group: _Asked, stored: _Stored) -> Found:
    """The nearest of those found so far and of a block, by a.a + b.b - 2 a.b."""
    count = near.labels.shape[1]
    sums = stored.squares - 2.0 * _multiply(group, stored.rows)
    distances = (sums + group.squares).clamp(min=0)
    # The bits of floats that are not negative are ordered as the floats are; ties to the smaller label.
    keys = (distances.view(torch.int32).to(torch.int64) << 32) + stored.ranks
    chosen = keys.topk(min(count, keys.shape[1]), dim=1, largest=False, sorted=False).indices
    here = Found(stored.labels[chosen], distances.gather(1, chosen))
    return first(_join(near, here), count)


def _multiply(group: _Asked, stored: Tensor) -> Tensor:
    """The products (Q, S) of queries and pictures, summed in float32; on a GPU by bfloat16's fast units."""
    if stored.dtype != torch.bfloat16:
        return group.parts @ stored.T
    products = torch.mm(group.parts, stored.T, out_dtype=torch.float32)
    return products.reshape(3, -1, len(stored)).sum(0)


def _measure(rows: Tensor, labels: Tensor, slots: Slots, part: Window, pixels: int) -> Found:
    """Measure candidates (Q, K) by the differences themselves, some columns at a time."""
    columns = max(1, _BYTES // (len(rows) * math.prod(slots.shape)))
    sums = []
    for several in torch.split(labels, columns, dim=1):
        pictures = slots.gather(several.flatten())[:, :, *part].flatten(1)
        sums.append(_sum_squares(rows, pictures.reshape(*several.shape, -1)))
    distances = torch.cat(sums, 1) / pixels
    return Found(labels, distances.masked_fill(labels < 0, torch.inf))


def _sum_squares(rows: Tensor, pictures: Tensor) -> Tensor:
    """Sums (Q, K) of squared differences between rows (Q, D) and pictures (Q, K, D) of uint8."""
    if rows.is_cuda:
        from everlearn.memory import search_kernel

        return search_kernel.measure(rows, pictures)
    short = rows.shape[1] - pictures.shape[2]
    columns = (pad(column.float() / 255.0, (0, short)) for column in pictures.unbind(1))
    return torch.stack([(rows - column).square().sum(1) for column in columns], 1)


def first(found: Found, k: int) -> Found:
    """The k first, by distance and then by label."""
    labels, order = found.labels.sort(dim=1, stable=True)
    distances, order = found.distances.gather(1, order).sort(dim=1, stable=True)
    return Found(labels.gather(1, order)[:, :k], distances[:, :k])
