"""A Triton kernel that measures candidates: each sum is added up in one order, whatever else is asked."""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 1024


def measure(rows: Tensor, pictures: Tensor) -> Tensor:
    """Sums (Q, K) of squared differences between rows (Q, D) of floats and pictures (Q, K, D) of uint8."""
    queries, several, size = pictures.shape
    sums = torch.empty((queries, several), device=rows.device)
    with torch.cuda.device_of(rows):
        measure_kernel[(queries * several,)](
            rows, pictures.contiguous(), sums, rows.stride(0), several, size, BLOCK=_BLOCK
        )
    return sums


@triton.jit
def measure_kernel(rows, pictures, sums, STRIDE, K, D, BLOCK: tl.constexpr):
    """One pair: the sum of (row - picture / 255)^2."""
    pair = tl.program_id(0).to(tl.int64)
    row, picture = rows + pair // K * STRIDE, pictures + pair * D
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, D, BLOCK):
        place = start + tl.arange(0, BLOCK)
        inside = place < D
        value = tl.load(row + place, mask=inside, other=0.0)
        pixel = tl.load(picture + place, mask=inside, other=0).to(tl.float32)
        # Rounded correctly, as on a CPU, so that a picture is at no distance from itself.
        rest = value - tl.div_rn(pixel, tl.full((BLOCK,), 255.0, tl.float32))
        total += rest * rest
    tl.store(sums + pair, tl.sum(total))
