"""A Triton kernel that hardens or blurs the edges of images, as `edges.change_edges_plain` does.

Torch takes a dozen passes over all images; here each image is read once, and most are only copied.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 512  # pixels of a program


def change_edges(images: Tensor, edges: Tensor) -> Tensor:
    """Harden or blur images (B, C, H, W), float32, by edges (B, 2): threshold and amount of blur."""
    images = images.contiguous()
    count, channels, height, width = images.shape
    out = torch.empty_like(images)
    with torch.cuda.device_of(images):
        change_edges_kernel[(count * channels, triton.cdiv(height * width, _BLOCK))](
            images, edges.contiguous(), out, channels, height, width, BLOCK=_BLOCK
        )
    return out


@triton.jit
def change_edges_kernel(images, edges, out, C, H, W, BLOCK: tl.constexpr):
    """out = h + amount (blur(h) - h), where h is the hardened image if threshold > 0, else the image."""
    plane = tl.program_id(0).to(tl.int64)  # 64 bits: plane * H * W may exceed 2^31
    picture = images + plane * H * W
    threshold = tl.load(edges + plane // C * 2)
    amount = tl.load(edges + plane // C * 2 + 1)
    pixel_id = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = pixel_id < H * W
    # Lanes beyond the last pixel repeat it, so that every address is inside the picture.
    row = tl.minimum(pixel_id, H * W - 1) // W
    col = tl.minimum(pixel_id, H * W - 1) % W
    value = hardened(picture, row, col, threshold, H, W)
    # Both conditions hold for a whole image: its programs take one branch. Without blur the value is
    # stored as it was read, bit for bit.
    if amount > 0:
        total = tl.zeros((BLOCK,), tl.float32)
        # Not unrolled: hardening each of nine neighbours reads nine pixels.
        for tap in range(9):
            down = tap // 3 - 1
            right = tap % 3 - 1
            near_row = tl.minimum(tl.maximum(row + down, 0), H - 1)
            near_col = tl.minimum(tl.maximum(col + right, 0), W - 1)
            # [1, 2, 1] along each axis: 4 in the middle, 2 beside it, 1 in the corners.
            weight = (2 - down * down) * (2 - right * right)
            total += weight * hardened(picture, near_row, near_col, threshold, H, W)
        value += amount * (total / 16 - value)
    tl.store(out + plane * H * W + pixel_id, value, mask=inside)


@triton.jit
def hardened(picture, row, col, threshold, H, W):
    """Pixels, set to the brightest or darkest of their 3 x 3 neighbours if threshold > 0."""
    value = tl.load(picture + row * W + col)
    if threshold > 0:
        brightest = value
        darkest = value
        for tap in tl.static_range(9):
            # The border is repeated.
            near_row = tl.minimum(tl.maximum(row + tap // 3 - 1, 0), H - 1)
            near_col = tl.minimum(tl.maximum(col + tap % 3 - 1, 0), W - 1)
            near = tl.load(picture + near_row * W + near_col)
            brightest = tl.maximum(brightest, near)
            darkest = tl.minimum(darkest, near)
        is_bright = value - darkest > threshold * (brightest - darkest)
        value = tl.where(is_bright, brightest, darkest)
    return value
