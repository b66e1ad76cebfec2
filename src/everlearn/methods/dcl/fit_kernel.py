"""A Triton kernel that fits exemplars to images: `fit.fit`, one program a pair, nothing written between."""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 512


def fit(
    images: Tensor, rows: Tensor, exemplars: Tensor, back: Tensor, steps: int, ridge: float
) -> tuple[Tensor, Tensor]:
    """The least mean squared differences (P,) of pairs, and the maps (P, 2, 3) that gave them.

    Args:
        images: (N, C, H, W) float32.
        rows: (P,) which image a pair is of.
        exemplars: (P, C, H, W) uint8.
        back: (P, 2, 3) maps from image to exemplar.
    """
    _, channels, height, width = images.shape
    least, best = torch.empty(len(rows), device=images.device), torch.empty_like(back)
    if len(rows):
        with torch.cuda.device_of(images):
            fit_kernel[(len(rows),)](
                images.contiguous(), rows, exemplars.contiguous(), back.contiguous(), least, best,
                height, width, ridge, C=channels, STEPS=steps, BLOCK=_BLOCK,
            )  # fmt: skip
    return least, best


@triton.jit
def fit_kernel(
    images, rows, exemplars, back, least, kept, H, W, ridge,
    C: tl.constexpr, STEPS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Draw one exemplar into its image and move it, as `fit.fit` and `fit.improve` do."""
    pair = tl.program_id(0).to(tl.int64)
    size = H * W
    image = images + tl.load(rows + pair) * C * size
    exemplar = exemplars + pair * C * size
    back += pair * 6
    a, b, c = tl.load(back), tl.load(back + 1), tl.load(back + 2)
    d, e, f = tl.load(back + 3), tl.load(back + 4), tl.load(back + 5)
    best, ka, kb, kc, kd, ke, kf = float("inf"), a, b, c, d, e, f
    for step in tl.static_range(STEPS + 1):
        zero = tl.zeros((BLOCK,), tl.float32)
        error = zero
        h00, h01, h02, h03, h11 = zero, zero, zero, zero, zero
        h12, h13, h22, h23, h33 = zero, zero, zero, zero, zero
        b0, b1, b2, b3 = zero, zero, zero, zero
        for start in range(0, size, BLOCK):
            place = start + tl.arange(0, BLOCK)
            inside = place < size
            row, col = place // W, place % W
            for channel in tl.static_range(C):
                picture = exemplar + channel * size
                value = tl.load(image + channel * size + place, mask=inside, other=0.0)
                drawn = sample(picture, row, col, inside, a, b, c, d, e, f, H, W)
                rest = tl.where(inside, value - drawn, 0.0)
                error += rest * rest
                if step < STEPS:
                    to_x, to_y = slopes(picture, row, col, inside, a, b, c, d, e, f, H, W)
                    x, y = centre(col, W), centre(row, H)
                    grow, turn = to_x * x + to_y * y, to_y * x - to_x * y
                    h00, h01 = h00 + grow * grow, h01 + grow * turn
                    h02, h03 = h02 + grow * to_x, h03 + grow * to_y
                    h11, h12, h13 = h11 + turn * turn, h12 + turn * to_x, h13 + turn * to_y
                    h22, h23, h33 = h22 + to_x * to_x, h23 + to_x * to_y, h33 + to_y * to_y
                    b0, b1 = b0 + grow * rest, b1 + turn * rest
                    b2, b3 = b2 + to_x * rest, b3 + to_y * rest
        mean = tl.sum(error) / (C * size)
        better = mean < best
        best = tl.where(better, mean, best)
        ka, kb, kc = tl.where(better, a, ka), tl.where(better, b, kb), tl.where(better, c, kc)
        kd, ke, kf = tl.where(better, d, kd), tl.where(better, e, ke), tl.where(better, f, kf)
        if step < STEPS:
            s00, s11, s22, s33 = tl.sum(h00), tl.sum(h11), tl.sum(h22), tl.sum(h33)
            more = ridge * (s00 + s11 + s22 + s33) / 4 + 1e-12
            scale, angle, right_by, down_by = solve(
                s00 + more, tl.sum(h01), tl.sum(h02), tl.sum(h03), s11 + more, tl.sum(h12), tl.sum(h13),
                s22 + more, tl.sum(h23), s33 + more, tl.sum(b0), tl.sum(b1), tl.sum(b2), tl.sum(b3),
            )  # fmt: skip
            c, f = a * right_by + b * down_by + c, d * right_by + e * down_by + f
            a, b = a * (1 + scale) + b * angle, b * (1 + scale) - a * angle
            d, e = d * (1 + scale) + e * angle, e * (1 + scale) - d * angle
    tl.store(least + pair, best)
    kept += pair * 6
    tl.store(kept, ka)
    tl.store(kept + 1, kb)
    tl.store(kept + 2, kc)
    tl.store(kept + 3, kd)
    tl.store(kept + 4, ke)
    tl.store(kept + 5, kf)


@triton.jit
def slopes(picture, row, col, inside, a, b, c, d, e, f, H, W):
    """How what is drawn changes along x and y: `fit.slopes`, and 0 outside."""
    left, right = tl.maximum(col - 1, 0), tl.minimum(col + 1, W - 1)
    above, below = tl.maximum(row - 1, 0), tl.minimum(row + 1, H - 1)
    to_x = sample(picture, row, right, inside, a, b, c, d, e, f, H, W)
    to_x -= sample(picture, row, left, inside, a, b, c, d, e, f, H, W)
    to_y = sample(picture, below, col, inside, a, b, c, d, e, f, H, W)
    to_y -= sample(picture, above, col, inside, a, b, c, d, e, f, H, W)
    return tl.where(inside, to_x * (W / 4.0), 0.0), tl.where(inside, to_y * (H / 4.0), 0.0)


@triton.jit
def sample(picture, row, col, inside, a, b, c, d, e, f, H, W):
    """The picture (uint8) where a map sends the centre of a pixel: bilinear, the border repeated."""
    x, y = centre(col, W), centre(row, H)
    # maximum passes over what is no number, so that every place is inside.
    across = tl.minimum(tl.maximum(((a * x + b * y + c + 1) * W - 1) / 2, 0.0), W - 1.0)
    down = tl.minimum(tl.maximum(((d * x + e * y + f + 1) * H - 1) / 2, 0.0), H - 1.0)
    left, top = tl.floor(across), tl.floor(down)
    to_right, to_bottom = across - left, down - top
    first, upper = left.to(tl.int32), top.to(tl.int32)
    second, lower = tl.minimum(first + 1, W - 1), tl.minimum(upper + 1, H - 1)
    above = pixel(picture, upper, first, inside, W) * (1 - to_right)
    above += pixel(picture, upper, second, inside, W) * to_right
    below = pixel(picture, lower, first, inside, W) * (1 - to_right)
    below += pixel(picture, lower, second, inside, W) * to_right
    return (above * (1 - to_bottom) + below * to_bottom) / 255.0


@triton.jit
def pixel(picture, row, col, inside, W):
    """A pixel, from 0 to 255."""
    return tl.load(picture + row * W + col, mask=inside, other=0).to(tl.float32)


@triton.jit
def centre(place, side):
    """The centre of a pixel, from -1 to 1."""
    return (2 * place + 1) / side - 1.0


@triton.jit
def solve(h00, h01, h02, h03, h11, h12, h13, h22, h23, h33, b0, b1, b2, b3):
    """The solution of four equations with a symmetric, positive matrix, by elimination."""
    m = h01 / h00
    h11, h12, h13, b1 = h11 - m * h01, h12 - m * h02, h13 - m * h03, b1 - m * b0
    m = h02 / h00
    h22, h23, b2 = h22 - m * h02, h23 - m * h03, b2 - m * b0
    m = h03 / h00
    h33, b3 = h33 - m * h03, b3 - m * b0
    m = h12 / h11
    h22, h23, b2 = h22 - m * h12, h23 - m * h13, b2 - m * b1
    m = h13 / h11
    h33, b3 = h33 - m * h13, b3 - m * b1
    m = h23 / h22
    h33, b3 = h33 - m * h23, b3 - m * b2
    x3 = b3 / h33
    x2 = (b2 - h23 * x3) / h22
    x1 = (b1 - h12 * x2 - h13 * x3) / h11
    return (b0 - h01 * x1 - h02 * x2 - h03 * x3) / h00, x1, x2, x3
