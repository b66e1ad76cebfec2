"""Triton kernels of ResNet's first layers: 7 x 7 convolution, batch normalisation, ReLU, 3 x 3 pool.

Libraries are slow for images of one or three channels. Here a patch of the image is gathered as a row
of a matrix product, the pool reads what it normalises itself, and the slope of the convolution's output
is made and used at once, never stored. Sums are added up in a fixed order: the same input, the same bits.
Sizes: images (B, C, S, S), convolved (B, H, H, 64) with H = S / 2, pooled (B, H / 2, H / 2, 64).
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def gather(images, pixels, taps, M, K, S, H):
    """Patches (pixels, taps): what tap (c, dy, dx) of the 7 x 7 window sees at output pixels."""
    b, y, x = pixels // (H * H), (pixels // H) % H, pixels % H
    c, dy, dx = taps // 49, (taps // 7) % 7, taps % 7
    row = 2 * y[:, None] + dy[None, :] - 3
    col = 2 * x[:, None] + dx[None, :] - 3
    inside = (row >= 0) & (row < S) & (col >= 0) & (col < S)
    inside = inside & (pixels[:, None] < M) & (taps[None, :] < K)
    plane = b[:, None] * (K // 49) + c[None, :]
    return tl.load(images + (plane * S + row) * S + col, mask=inside, other=0.0)


@triton.jit
def convolve_kernel(
    images, weight, out, parts, M, K, S, H, SPAN,
    KP: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """Convolve this program's pixels; leave the sums of the results and their squares (P, 2, 64)."""
    place, cols = tl.program_id(0), tl.arange(0, COLS)
    first = tl.zeros((COLS,), tl.float32)
    second = tl.zeros((COLS,), tl.float32)
    for start in range(place * SPAN, min((place + 1) * SPAN, M), ROWS):
        pixels = start + tl.arange(0, ROWS)
        total = tl.zeros((ROWS, COLS), tl.float32)
        for k in range(0, KP, 64):
            taps = k + tl.arange(0, 64)
            seen = gather(images, pixels, taps, M, K, S, H)
            where = cols[None, :] * K + taps[:, None]
            near = tl.load(weight + where, mask=taps[:, None] < K, other=0.0)
            total = tl.dot(seen, near, total)
        small = total.to(out.dtype.element_ty)
        tl.store(out + pixels[:, None] * COLS + cols[None, :], small, mask=pixels[:, None] < M)
        value = tl.where(pixels[:, None] < M, small.to(tl.float32), 0.0)
        first += tl.sum(value, axis=0)
        second += tl.sum(value * value, axis=0)
    tl.store(parts + place * 2 * COLS + cols, first)
    tl.store(parts + place * 2 * COLS + COLS + cols, second)


@triton.jit
def moments_kernel(
    parts, moments, mean_kept, var_kept, M, eps, momentum, P: tl.constexpr, COLS: tl.constexpr
):
    """Add the parts up to mean and 1 / deviation (2, 64), and move the kept moments."""
    cols = tl.program_id(0) * 16 + tl.arange(0, 16)
    many = tl.arange(0, P)[:, None] * 2 * COLS + cols[None, :]
    mean = tl.sum(tl.load(parts + many), axis=0) / M
    var = tl.maximum(tl.sum(tl.load(parts + many + COLS), axis=0) / M - mean * mean, 0.0)
    tl.store(moments + cols, mean)
    tl.store(moments + COLS + cols, 1.0 / tl.sqrt(var + eps))
    old = tl.load(mean_kept + cols)
    tl.store(mean_kept + cols, old + momentum * (mean - old))
    old = tl.load(var_kept + cols)
    tl.store(var_kept + cols, old + momentum * (var * (M / (M - 1.0)) - old))


@triton.jit
def pool_kernel(
    x, weight, bias, moments, out, chosen, N, H, ROWS: tl.constexpr, COLS: tl.constexpr
):
    """Normalise, cut below 0 and take the largest of each 3 x 3 window; chosen: which, or 9 for none."""
    Q = H // 2
    pixels, cols = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, COLS)
    b, y, z = pixels // (Q * Q), (pixels // Q) % Q, pixels % Q
    scale = tl.load(weight + cols) * tl.load(moments + COLS + cols)
    shift = tl.load(bias + cols) - tl.load(moments + cols) * scale
    best = tl.zeros((ROWS, COLS), tl.float32)
    which = tl.full((ROWS, COLS), 9, tl.int32)
    for tap in tl.static_range(9):
        row, col = 2 * y + tap // 3 - 1, 2 * z + tap % 3 - 1
        inside = (row >= 0) & (row < H) & (col >= 0) & (col < H) & (pixels < N)
        where = ((b * H + row) * H + col)[:, None] * COLS + cols[None, :]
        value = tl.load(x + where, mask=inside[:, None], other=0.0).to(tl.float32)
        value = value * scale[None, :] + shift[None, :]
        better = (value > best) & inside[:, None]
        best = tl.where(better, value, best)
        which = tl.where(better, tap, which)
    where = pixels[:, None] * COLS + cols[None, :]
    tl.store(out + where, best.to(out.dtype.element_ty), mask=pixels[:, None] < N)
    tl.store(chosen + where, which.to(tl.int8), mask=pixels[:, None] < N)


@triton.jit
def pool_sums_kernel(
    slope, x, chosen, moments, parts, N, H, SPAN, ROWS: tl.constexpr, COLS: tl.constexpr
):
    """Leave the sums of the slope and of slope * normalised x, where it was chosen (P, 2, 64)."""
    Q = H // 2
    place, cols = tl.program_id(0), tl.arange(0, COLS)
    mean, rate = tl.load(moments + cols), tl.load(moments + COLS + cols)
    first = tl.zeros((ROWS, COLS), tl.float32)
    second = tl.zeros((ROWS, COLS), tl.float32)
    for start in range(place * SPAN, min((place + 1) * SPAN, N), ROWS):
        pixels = start + tl.arange(0, ROWS)
        where = pixels[:, None] * COLS + cols[None, :]
        tap = tl.load(chosen + where, mask=pixels[:, None] < N, other=9).to(tl.int32)
        g = tl.load(slope + where, mask=tap < 9, other=0.0).to(tl.float32)
        b, y, z = pixels // (Q * Q), (pixels // Q) % Q, pixels % Q
        row, col = 2 * y[:, None] + tap // 3 - 1, 2 * z[:, None] + tap % 3 - 1
        source = ((b[:, None] * H + row) * H + col) * COLS + cols[None, :]
        value = tl.load(x + source, mask=tap < 9, other=0.0).to(tl.float32)
        first += g
        second += g * (value - mean[None, :])
    tl.store(parts + place * 2 * COLS + cols, tl.sum(first, axis=0))
    tl.store(parts + place * 2 * COLS + COLS + cols, tl.sum(second, axis=0) * rate)


@triton.jit
def weight_slope_kernel(
    slope, x, chosen, images, weight, moments, sums, parts, M, K, S, H, SPAN,
    KP: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """Leave this program's share of the slope of the convolution's weight in parts (P, KP, 64)."""
    Q = H // 2
    place, cols = tl.program_id(0), tl.arange(0, COLS)
    taps = tl.program_id(1) * 64 + tl.arange(0, 64)
    mean, rate = tl.load(moments + cols), tl.load(moments + COLS + cols)
    scale = tl.load(weight + cols) * rate
    sum_g, sum_gx = tl.load(sums + cols), tl.load(sums + COLS + cols)
    total = tl.zeros((64, COLS), tl.float32)
    for start in range(place * SPAN, min((place + 1) * SPAN, M), ROWS):
        pixels = start + tl.arange(0, ROWS)
        b, y, z = pixels // (H * H), (pixels // H) % H, pixels % H
        g = tl.zeros((ROWS, COLS), tl.float32)
        for corner in tl.static_range(4):
            # Windows that hold row y: y // 2, and y // 2 + 1 where y is odd; columns likewise.
            row, col = y // 2 + corner // 2, z // 2 + corner % 2
            down, right = y + 1 - 2 * row, z + 1 - 2 * col
            tap = down * 3 + right
            held = (down >= 0) & (right >= 0) & (row < Q) & (col < Q) & (pixels < M)
            where = ((b * Q + row) * Q + col)[:, None] * COLS + cols[None, :]
            own = tl.load(chosen + where, mask=held[:, None], other=9).to(tl.int32) == tap[:, None]
            g += tl.load(slope + where, mask=held[:, None] & own, other=0.0).to(tl.float32)
        where = pixels[:, None] * COLS + cols[None, :]
        value = tl.load(x + where, mask=pixels[:, None] < M, other=0.0).to(tl.float32)
        normal = (value - mean[None, :]) * rate[None, :]
        value = scale[None, :] * (g - (sum_g[None, :] + normal * sum_gx[None, :]) / M)
        value = tl.where(pixels[:, None] < M, value, 0.0).to(x.dtype.element_ty)
        seen = gather(images, pixels, taps, M, K, S, H)
        total = tl.dot(tl.trans(seen), value, total)
    tl.store(parts + (place * KP + taps[:, None]) * COLS + cols[None, :], total)
