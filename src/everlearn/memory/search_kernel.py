"""A Triton kernel that sums squared errors in a fixed order, whatever else is measured in the same call."""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 1024


def squared_errors(pixels: Tensor, images: Tensor) -> Tensor:
    """Return sums (Q, K) of squared differences between float queries (Q, D) and uint8 images (Q, K, D)."""
    queries, candidates, size = images.shape
    sums = torch.empty((queries, candidates), device=pixels.device)
    with torch.cuda.device_of(pixels):
        squared_errors_kernel[(queries * candidates,)](
            pixels, images.contiguous(), sums, pixels.stride(0), candidates, size, BLOCK=_BLOCK
        )
    return sums


@triton.jit
def squared_errors_kernel(pixels, images, sums, STRIDE, K, D, BLOCK: tl.constexpr):
    """Compute sums[q, k] = sum over d of (pixels[q, d] - images[q, k, d] / 255)^2, one pair per program.

    A program owns one sum, so the order of its additions depends on D and BLOCK only: a batched
    reduction would choose its split by the number of pairs, and equal pairs could differ in a bit.
    """
    # int64: the Q * K * D bytes of candidates may exceed 2^31.
    pair = tl.program_id(0).to(tl.int64)
    # Rows of `pixels` are STRIDE apart, because they are padded beyond D; images are contiguous.
    row = pixels + pair // K * STRIDE
    image = images + pair * D
    # BLOCK partial sums, each over every BLOCK-th pixel, reduced once at the end.
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, D, BLOCK):
        column = start + tl.arange(0, BLOCK)
        inside = column < D
        query_pixel = tl.load(row + column, mask=inside, other=0.0)
        image_pixel = tl.load(image + column, mask=inside, other=0).to(tl.float32)
        # div_rn rounds correctly, as a CPU does; Triton's `/` may be off by one bit, and then an
        # image would not be at distance 0 from itself.
        error = query_pixel - tl.div_rn(image_pixel, tl.full((BLOCK,), 255.0, tl.float32))
        total += error * error
    tl.store(sums + pair, tl.sum(total))
