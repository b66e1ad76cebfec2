"""Triton kernels that find and sort the few nearest images of each query, with one program per query.

PyTorch's sort and topk take several launches each, which costs more than sorting a few numbers.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_TAKEN = tl.constexpr(2**63 - 1)  # larger than any key


def nearest_first(labels: Tensor, distances: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Sort rows (Q, K) by distance, then by label, and return the first `count` columns of both.

    Distances are not negative. The time grows with K^2, so K should be small.
    """
    queries, columns = labels.shape
    sorted_labels = labels.new_empty((queries, count))
    sorted_distances = distances.new_empty((queries, count))
    if queries:
        with torch.cuda.device_of(labels):
            nearest_first_kernel[(queries,)](
                labels.contiguous(), distances.contiguous(), sorted_labels, sorted_distances,
                columns, count, BLOCK=triton.next_power_of_2(columns),
            )  # fmt: skip
    return sorted_labels, sorted_distances


def select_nearest(
    products: Tensor,
    query_norms: Tensor,
    stored_norms: Tensor,
    label_ranks: Tensor,
    sorted_labels: Tensor,
    count: int,
) -> tuple[Tensor, Tensor]:
    """Return labels and squared distances (Q, count) of the nearest stored images, nearest first.

    The time grows with `count`, which should be small and at most S.

    Args:
        products: (P, Q, S), with the product of query and image as the sum over P.
        query_norms: (Q, 1) squared norms of queries.
        stored_norms: (S,) squared norms of images; inf for free slots.
        label_ranks: (S,) int64, the rank of each label in sorted order.
        sorted_labels: (S,) int64 in ascending order.
    """
    terms, queries, stored = products.shape
    labels = sorted_labels.new_empty((queries, count))
    distances = products.new_empty((queries, count))
    with torch.cuda.device_of(products):
        select_nearest_kernel[(queries,)](
            products.contiguous(), query_norms, stored_norms, label_ranks, sorted_labels,
            labels, distances, queries, stored, count,
            TERMS=terms, BLOCK=triton.next_power_of_2(stored), num_warps=8,
        )  # fmt: skip
    return labels, distances


@triton.jit
def nearest_first_kernel(
    labels, distances, sorted_labels, sorted_distances, K, COUNT, BLOCK: tl.constexpr
):
    """Sort one row: the place of a column is the number of columns that come before it."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < K
    label = tl.load(labels + row * K + column, mask=inside, other=0)
    distance = tl.load(distances + row * K + column, mask=inside, other=0.0)
    # Non-negative floats are ordered like their bits; NaN comes last, as in torch.sort.
    bits = distance.to(tl.int32, bitcast=True)
    key = tl.where(distance == distance, bits, 0x7FFFFFFF)
    # first[i, j]: column j comes before column i. Equal columns keep their order.
    nearer = key[None, :] < key[:, None]
    as_near = key[None, :] == key[:, None]
    smaller = label[None, :] < label[:, None]
    same = (label[None, :] == label[:, None]) & (column[None, :] < column[:, None])
    first = (nearer | (as_near & (smaller | same))) & inside[None, :]
    place = tl.sum(first.to(tl.int32), axis=1)
    kept = inside & (place < COUNT)
    tl.store(sorted_labels + row * COUNT + place, label, mask=kept)
    tl.store(sorted_distances + row * COUNT + place, distance, mask=kept)


@triton.jit
def select_nearest_kernel(
    products, query_norms, stored_norms, label_ranks, sorted_labels, labels, distances,
    Q, S, COUNT, TERMS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Take the smallest of |a - b|^2 = a.a + b.b - 2 a.b over all images, COUNT times.

    All distances of a query stay in the registers of its program, so that only products are read.
    """
    query = tl.program_id(0).to(tl.int64)
    slot = tl.arange(0, BLOCK)
    inside = slot < S
    product = tl.zeros((BLOCK,), tl.float32)
    for term in tl.static_range(TERMS):
        product += tl.load(products + (term * Q + query) * S + slot, mask=inside, other=0.0)
    stored_norm = tl.load(stored_norms + slot, mask=inside, other=0.0)
    distance = tl.maximum(stored_norm - 2.0 * product + tl.load(query_norms + query), 0.0)
    # One int64 key holds the distance in its upper half and the rank of the label in its lower half, so
    # keys are unique, and ties go to the smaller label.
    rank = tl.load(label_ranks + slot, mask=inside, other=0)
    key = (distance.to(tl.int32, bitcast=True).to(tl.int64) << 32) + rank
    key = tl.where(inside, key, _TAKEN)
    for place in range(COUNT):
        least = tl.min(key, axis=0)
        label = tl.load(sorted_labels + (least & 0xFFFFFFFF))
        tl.store(labels + query * COUNT + place, label)
        squared_distance = (least >> 32).to(tl.int32).to(tl.float32, bitcast=True)
        tl.store(distances + query * COUNT + place, squared_distance)
        key = tl.where(key == least, _TAKEN, key)
