"""Exact nearest-neighbour search: a matrix product selects candidates, their differences are then measured.

Every sum behind a distance has a shape that depends only on the image size and the device, so the
distance between a query and an image has the same bits whatever else is searched or stored.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from everlearn.memory.image_store import Block, ImageStore
from everlearn.memory.validation import Shape

Window = tuple[slice, slice]
# Candidates beyond the k requested. The result is exact unless rounding in the product (about 1e-7 of
# the mean square) displaces an image by more ranks than this.
_EXTRA_CANDIDATES = 6
# Queries are searched in groups of one size. Small groups leave a GPU idle, so there a group has as many
# queries as fit into _GROUP_PIXELS, unless a few queries are all there is; on a CPU a single query should
# not cost more than the smallest group.
_MIN_GROUP = 64
_FEW_ON_GPU = 128
_MAX_GROUP = 1024
_GROUP_PIXELS = 2**22
# Columns up to which one kernel sorts on a GPU: it compares each one with every other.
_MAX_KERNEL_COLUMNS = 64
_MAX_CANDIDATE_BYTES = 2**27  # of candidate images gathered at once
_CENTER = 128.0


class SearchResult(NamedTuple):
    """The nearest images, nearest first; ties are ordered by label.

    Attributes:
        labels: (B, k) int64; -1 where fewer than k images are stored.
        distances: (B, k) float32 mean squared errors; inf where fewer than k images are stored.
    """

    labels: Tensor
    distances: Tensor

    @property
    def novelty(self) -> Tensor:
        """Distance ratio d1 / d2 of the two nearest images, (B,); 1 where both distances are 0."""
        first = self.distances[:, 0]
        second = self.distances[:, 1]
        return torch.where(second > 0, first / second, torch.ones_like(first))


class _StoredBlock(NamedTuple):
    """A block of stored images, prepared for the matrix product.

    Attributes:
        labels: (S,) as in the block.
        pixels: (S, D) pixels minus 128. They are integers, so bfloat16 holds them exactly on a GPU.
        squared_norms: (S,) of the pixels; inf for free slots.
        label_ranks: (S,) rank of each label in sorted order.
        sorted_labels: (S,) in ascending order.
    """

    labels: Tensor
    pixels: Tensor
    squared_norms: Tensor
    label_ranks: Tensor
    sorted_labels: Tensor


class _QueryGroup(NamedTuple):
    """A group of queries, prepared for the matrix product.

    Attributes:
        pixels: (Q, D) in [0, 1], as given.
        terms: (P Q, D), P summands of 255 pixels - 128: one on a CPU, three in bfloat16 on a GPU.
        squared_norms: (Q, 1) of the sum of the terms.
    """

    pixels: Tensor
    terms: Tensor
    squared_norms: Tensor


@torch.no_grad()
def nearest(store: ImageStore, queries: Tensor, k: int, window: Window) -> SearchResult:
    """Find the k nearest images of each query (B, C, H, W), comparing the pixels of a window."""
    groups = [_prepare_queries(pixels) for pixels in _split_groups(_crop(queries, window))]
    num_candidates = min(k, len(store.slots)) + _EXTRA_CANDIDATES
    candidates = [_empty_result(group.pixels, 0) for group in groups]
    with full_precision(queries.device):
        for stored in _prepare_blocks(store, window):
            for index, group in enumerate(groups):
                in_block = _nearest_in_block(group, stored, num_candidates)
                candidates[index] = _merge(candidates[index], in_block, num_candidates)
    num_pixels = queries[:, :, *window].shape[1:].numel()
    results = []
    for group, found in zip(groups, candidates, strict=True):
        measured = _measure(group.pixels, found.labels, store, window, num_pixels)
        results.append(nearest_first(_join(_empty_result(group.pixels, k), measured), k))
    return SearchResult(*(torch.cat(parts)[: len(queries)] for parts in zip(*results, strict=True)))


def crop_window(shape: Shape, crop: float | None) -> Window:
    """Return the rows and columns to compare: every pixel that the central crop touches."""
    starts = (0 if crop is None else int(side / 2 - crop * side) for side in shape[1:])
    rows, columns = (
        slice(start, side - start) for start, side in zip(starts, shape[1:], strict=True)
    )
    return rows, columns


@contextmanager
def full_precision(device: torch.device) -> Iterator[None]:
    """Multiply matrices in float32, without TF32, bfloat16 or autocast."""
    backends = (torch.backends.cuda.matmul, torch.backends.mkldnn.matmul)  # type: ignore[attr-defined]
    before = [backend.fp32_precision for backend in backends]
    try:
        for backend in backends:
            backend.fp32_precision = "ieee"
        with torch.autocast(device.type, enabled=False):
            yield
    finally:
        for backend, precision in zip(backends, before, strict=True):
            backend.fp32_precision = precision


def nearest_first(result: SearchResult, k: int) -> SearchResult:
    """Sort by distance, which is not negative, then by label, and keep the first k columns."""
    columns = result.labels.shape[1]
    if result.labels.is_cuda and columns <= _MAX_KERNEL_COLUMNS:
        from everlearn.memory import sort_kernel

        return SearchResult(*sort_kernel.nearest_first(*result, min(k, columns)))
    labels, order = result.labels.sort(dim=1, stable=True)
    distances, order = result.distances.gather(1, order).sort(dim=1, stable=True)
    return SearchResult(labels.gather(1, order)[:, :k], distances[:, :k])


def _crop(images: Tensor, window: Window) -> Tensor:
    """Return the pixels of a window as float32 rows (N, D).

    Zeros pad D to a multiple of 32, so that vectorised sums have no remainder to add in another order.
    """
    pixels = images[:, :, *window].flatten(1).float()
    padding = -pixels.shape[1] % 32
    return pad(pixels, (0, padding)) if padding else pixels


def _split_groups(pixels: Tensor) -> tuple[Tensor, ...]:
    """Split rows (B, D) into groups (Q, D) of one size, the last padded with zeros."""
    size = _group_size(pixels)
    groups = max(-(-len(pixels) // size), 1)
    return pad(pixels, (0, 0, 0, groups * size - len(pixels))).reshape(groups, size, -1).unbind()


def _group_size(pixels: Tensor) -> int:
    """Return the number of queries in a group, for rows (B, D)."""
    if not pixels.is_cuda:
        return _MIN_GROUP
    largest = _FEW_ON_GPU if len(pixels) <= _FEW_ON_GPU else _MAX_GROUP
    return min(max(_GROUP_PIXELS // pixels.shape[1], _MIN_GROUP), largest)


def _empty_result(pixels: Tensor, k: int) -> SearchResult:
    labels = torch.full((len(pixels), k), -1, dtype=torch.int64, device=pixels.device)
    return SearchResult(labels, torch.full((len(pixels), k), torch.inf, device=pixels.device))


def _join(first: SearchResult, second: SearchResult) -> SearchResult:
    return SearchResult(*(torch.cat(pair, 1) for pair in zip(first, second, strict=True)))


def _merge(candidates: SearchResult, in_block: SearchResult, count: int) -> SearchResult:
    """Keep the nearest of the candidates so far and of those in another block."""
    if not candidates.labels.shape[1]:
        return in_block
    return nearest_first(_join(candidates, in_block), count)


def _prepare_blocks(store: ImageStore, window: Window) -> Iterable[_StoredBlock]:
    """Prepare the blocks of a store; a single block stays prepared until the next edit.

    Several are prepared one after another, because all of them would take more memory than the images.
    """
    if len(store.blocks) > 1:
        return (_prepare_block(block, window) for block in store.used_blocks())
    key = str(window)  # slices have no hash before Python 3.12
    if key not in store.prepared:
        store.prepared[key] = [_prepare_block(block, window) for block in store.used_blocks()]
    prepared: list[_StoredBlock] = store.prepared[key]
    return prepared


def _prepare_block(block: Block, window: Window) -> _StoredBlock:
    """Centre pixels at 128, which reduces cancellation in the product; free slots are infinitely far."""
    pixels = _crop(block.images, window).sub_(_CENTER)
    squared_norms = pixels.square().sum(1).masked_fill(block.labels < 0, torch.inf)
    pixels = pixels.to(torch.bfloat16) if pixels.is_cuda else pixels
    sorted_labels, order = block.labels.sort()
    return _StoredBlock(block.labels, pixels, squared_norms, order.argsort(), sorted_labels)


def _prepare_queries(pixels: Tensor) -> _QueryGroup:
    """Centre pixels at 128; on a GPU, write each float32 number as a sum of three bfloat16 numbers."""
    if pixels.is_cuda:
        from everlearn.memory import query_kernel

        return _QueryGroup(pixels, *query_kernel.split_queries(pixels, _CENTER))
    centered = pixels * 255.0 - _CENTER
    return _QueryGroup(pixels, centered, centered.square().sum(1, keepdim=True))


def _nearest_in_block(group: _QueryGroup, stored: _StoredBlock, count: int) -> SearchResult:
    """Find the nearest images of a block, in any order, by |a - b|^2 = a.a + b.b - 2 a.b."""
    count = min(count, len(stored.labels))
    products = _multiply(group, stored.pixels)
    if products.is_cuda and count <= _MAX_KERNEL_COLUMNS:
        from everlearn.memory import sort_kernel

        norms = (group.squared_norms, stored.squared_norms)
        ranks = (stored.label_ranks, stored.sorted_labels)
        return SearchResult(*sort_kernel.select_nearest(products, *norms, *ranks, count))
    sums = stored.squared_norms - 2.0 * products.sum(0)
    distances = (sums + group.squared_norms).clamp(min=0)
    # Non-negative floats are ordered like their bits, so one int64 key holds the distance in its upper
    # half and the rank of the label in its lower half: topk then breaks ties by label on any device.
    keys = (distances.view(torch.int32).to(torch.int64) << 32) + stored.label_ranks
    chosen = keys.topk(count, dim=1, largest=False, sorted=False).indices
    return SearchResult(stored.labels[chosen], distances.gather(1, chosen))


def _multiply(group: _QueryGroup, stored: Tensor) -> Tensor:
    """Return products (P, Q, S) of each summand of queries with images, summed in float32.

    A GPU uses bfloat16 tensor cores.
    """
    if stored.dtype != torch.bfloat16:
        return (group.terms @ stored.T)[None]
    products = torch.mm(group.terms, stored.T, out_dtype=torch.float32)
    return products.reshape(-1, len(group.pixels), len(stored))


def _measure(
    pixels: Tensor, labels: Tensor, store: ImageStore, window: Window, num_pixels: int
) -> SearchResult:
    """Compute the exact distances of candidates (Q, K), a few columns at a time to bound memory."""
    columns = max(1, _MAX_CANDIDATE_BYTES // (len(pixels) * math.prod(store.shape)))
    sums = []
    for part in torch.split(labels, columns, dim=1):
        images = store.gather(part.flatten())[:, :, *window].flatten(1)
        sums.append(_squared_errors(pixels, images.reshape(*part.shape, -1)))
    distances = torch.cat(sums, 1) / num_pixels
    return SearchResult(labels, distances.masked_fill(labels < 0, torch.inf))


def _squared_errors(pixels: Tensor, images: Tensor) -> Tensor:
    """Return sums (Q, K) of squared differences between queries (Q, D) and uint8 images (Q, K, D)."""
    if pixels.is_cuda:
        from everlearn.memory import search_kernel

        return search_kernel.squared_errors(pixels, images)
    padding = pixels.shape[1] - images.shape[2]
    columns = (pad(column.float() / 255.0, (0, padding)) for column in images.unbind(1))
    return torch.stack([(pixels - column).square().sum(1) for column in columns], 1)
