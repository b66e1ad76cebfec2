"""A Triton kernel that prepares queries for products on bfloat16 tensor cores."""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 1024


def split_queries(pixels: Tensor, center: float) -> tuple[Tensor, Tensor]:
    """Return 255 pixels - center, of pixels (Q, D), as a sum of three bfloat16 terms, and squared norms.

    The terms (3 Q, D) hold all first terms, then all second and all third ones. Norms are (Q, 1).
    """
    queries, size = pixels.shape
    terms = pixels.new_empty((3 * queries, size), dtype=torch.bfloat16)
    squared_norms = pixels.new_empty((queries, 1))
    with torch.cuda.device_of(pixels):
        split_queries_kernel[(queries,)](
            pixels.contiguous(), terms, squared_norms, center, queries, size, BLOCK=_BLOCK
        )
    return terms, squared_norms


@triton.jit
def split_queries_kernel(pixels, terms, squared_norms, center, Q, D, BLOCK: tl.constexpr):
    """Split one query: each term is the bfloat16 number nearest to what the terms before it leave."""
    query = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, D, BLOCK):
        column = start + tl.arange(0, BLOCK)
        inside = column < D
        pixel = tl.load(pixels + query * D + column, mask=inside, other=0.0)
        rest = tl.where(inside, pixel * 255.0 - center, 0.0)
        total += rest * rest
        for term in tl.static_range(3):
            nearest = rest.to(tl.bfloat16)
            tl.store(terms + (term * Q + query) * D + column, nearest, mask=inside)
            rest -= nearest.to(tl.float32)
    tl.store(squared_norms + query, tl.sum(total))
