"""Triton kernels of batch normalisation with its addition and ReLU, for channels-last tensors.

A tensor (B, C, H, W) in channels-last memory is a matrix of M = B H W rows and C columns. A kernel of
sums leaves one partial sum a program; the kernel after it adds them up, always in the same order, so
that the same input gives the same bits.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def sums_kernel(x, parts, M, C, SPAN, ROWS: tl.constexpr, COLS: tl.constexpr):
    """Leave the sums of x and x * x over this program's rows in parts (P, 2, C)."""
    place, cols = tl.program_id(0), tl.program_id(1) * COLS + tl.arange(0, COLS)
    first = tl.zeros((ROWS, COLS), tl.float32)
    second = tl.zeros((ROWS, COLS), tl.float32)
    for start in range(place * SPAN, min((place + 1) * SPAN, M), ROWS):
        rows = start + tl.arange(0, ROWS)
        where = rows[:, None] * C + cols[None, :]
        value = tl.load(x + where, mask=rows[:, None] < M, other=0.0).to(tl.float32)
        first += value
        second += value * value
    tl.store(parts + place * 2 * C + cols, tl.sum(first, axis=0))
    tl.store(parts + place * 2 * C + C + cols, tl.sum(second, axis=0))


@triton.jit
def normalise_kernel(
    x, other, weight, bias, parts, out, moments, mean_kept, var_kept, M, C, SPAN, eps, momentum,
    P: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr, ADD: tl.constexpr, RELU: tl.constexpr,
):  # fmt: skip
    """Normalise, scale and shift x, add `other`, cut below 0; keep the moments (2, C)."""
    place, cols = tl.program_id(0), tl.program_id(1) * COLS + tl.arange(0, COLS)
    many = tl.arange(0, P)[:, None] * 2 * C + cols[None, :]
    mean = tl.sum(tl.load(parts + many), axis=0) / M
    square = tl.sum(tl.load(parts + many + C), axis=0) / M
    var = tl.maximum(square - mean * mean, 0.0)
    rate = 1.0 / tl.sqrt(var + eps)
    scale = tl.load(weight + cols) * rate
    shift = tl.load(bias + cols) - mean * scale
    if place == 0:
        tl.store(moments + cols, mean)
        tl.store(moments + C + cols, rate)
        old = tl.load(mean_kept + cols)
        tl.store(mean_kept + cols, old + momentum * (mean - old))
        old = tl.load(var_kept + cols)
        tl.store(var_kept + cols, old + momentum * (var * (M / (M - 1.0)) - old))
    for start in range(place * SPAN, min((place + 1) * SPAN, M), ROWS):
        rows = start + tl.arange(0, ROWS)
        where, inside = rows[:, None] * C + cols[None, :], rows[:, None] < M
        finish(x, other, out, where, inside, scale, shift, ADD, RELU)


@triton.jit
def finish(x, other, out, where, inside, scale, shift, ADD: tl.constexpr, RELU: tl.constexpr):
    """Scale and shift some places of x, add `other`, cut below 0."""
    value = tl.load(x + where, mask=inside, other=0.0).to(tl.float32)
    value = value * scale[None, :] + shift[None, :]
    if ADD:
        value += tl.load(other + where, mask=inside, other=0.0).to(tl.float32)
    if RELU:
        value = tl.maximum(value, 0.0)
    tl.store(out + where, value.to(out.dtype.element_ty), mask=inside)


@triton.jit
def own_kernel(
    x, other, weight, bias, mean_kept, var_kept, out, M, C, eps, own,
    ROWS: tl.constexpr, COLS: tl.constexpr, ADD: tl.constexpr, RELU: tl.constexpr,
):  # fmt: skip
    """Normalise one image by the kept moments, its own counting a little; M: places of an image."""
    image, cols = tl.program_id(0), tl.program_id(1) * COLS + tl.arange(0, COLS)
    kept = tl.load(mean_kept + cols)
    first = tl.zeros((ROWS, COLS), tl.float32)
    second = tl.zeros((ROWS, COLS), tl.float32)
    for start in range(0, M, ROWS):
        rows = start + tl.arange(0, ROWS)
        where, inside = (image * M + rows[:, None]) * C + cols[None, :], rows[:, None] < M
        value = tl.load(x + where, mask=inside, other=0.0).to(tl.float32)
        value = tl.where(inside, value - kept[None, :], 0.0)
        first += value
        second += value * value
    off = tl.sum(first, axis=0) / M
    spread = tl.maximum(tl.sum(second, axis=0) / M - off * off, 0.0)
    var = (1.0 - own) * (tl.load(var_kept + cols) + own * off * off) + own * spread
    scale = tl.load(weight + cols) / tl.sqrt(var + eps)
    shift = tl.load(bias + cols) - (kept + own * off) * scale
    for start in range(0, M, ROWS):
        rows = start + tl.arange(0, ROWS)
        where, inside = (image * M + rows[:, None]) * C + cols[None, :], rows[:, None] < M
        finish(x, other, out, where, inside, scale, shift, ADD, RELU)


@triton.jit
def slope_sums_kernel(
    slope, x, out, moments, parts, M, C, SPAN,
    ROWS: tl.constexpr, COLS: tl.constexpr, RELU: tl.constexpr,
):  # fmt: skip
    """Leave the sums of g and g * normalised x in parts (P, 2, C); g is the slope where out > 0."""
    place, cols = tl.program_id(0), tl.program_id(1) * COLS + tl.arange(0, COLS)
    mean, rate = tl.load(moments + cols), tl.load(moments + C + cols)
    first = tl.zeros((ROWS, COLS), tl.float32)
    second = tl.zeros((ROWS, COLS), tl.float32)
    for start in range(place * SPAN, min((place + 1) * SPAN, M), ROWS):
        rows = start + tl.arange(0, ROWS)
        where, inside = rows[:, None] * C + cols[None, :], rows[:, None] < M
        g = tl.load(slope + where, mask=inside, other=0.0).to(tl.float32)
        value = tl.load(x + where, mask=inside, other=0.0).to(tl.float32)
        if RELU:
            g = tl.where(tl.load(out + where, mask=inside, other=0.0) > 0, g, 0.0)
        first += g
        second += g * (value - mean[None, :])
    tl.store(parts + place * 2 * C + cols, tl.sum(first, axis=0))
    tl.store(parts + place * 2 * C + C + cols, tl.sum(second, axis=0) * rate)


@triton.jit
def slope_kernel(
    slope, x, out, weight, moments, parts, to_x, to_other, to_weight, to_bias, M, C, SPAN,
    P: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr, ADD: tl.constexpr, RELU: tl.constexpr,
):  # fmt: skip
    """Give the slopes with respect to x, the added tensor, weight and bias."""
    place, cols = tl.program_id(0), tl.program_id(1) * COLS + tl.arange(0, COLS)
    many = tl.arange(0, P)[:, None] * 2 * C + cols[None, :]
    sum_g = tl.sum(tl.load(parts + many), axis=0)
    sum_gx = tl.sum(tl.load(parts + many + C), axis=0)
    mean, rate = tl.load(moments + cols), tl.load(moments + C + cols)
    scale = tl.load(weight + cols) * rate
    if place == 0:
        tl.store(to_bias + cols, sum_g)
        tl.store(to_weight + cols, sum_gx)
    for start in range(place * SPAN, min((place + 1) * SPAN, M), ROWS):
        rows = start + tl.arange(0, ROWS)
        where, inside = rows[:, None] * C + cols[None, :], rows[:, None] < M
        g = tl.load(slope + where, mask=inside, other=0.0).to(tl.float32)
        value = tl.load(x + where, mask=inside, other=0.0).to(tl.float32)
        if RELU:
            g = tl.where(tl.load(out + where, mask=inside, other=0.0) > 0, g, 0.0)
        if ADD:
            tl.store(to_other + where, g.to(to_other.dtype.element_ty), mask=inside)
        normal = (value - mean[None, :]) * rate[None, :]
        value = scale[None, :] * (g - (sum_g[None, :] + normal * sum_gx[None, :]) / M)
        tl.store(to_x + where, value.to(to_x.dtype.element_ty), mask=inside)
