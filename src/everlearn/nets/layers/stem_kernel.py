"""Triton kernels of ResNet's first layers: 7 x 7 convolution, batch normalisation, ReLU, 3 x 3 max pool.

Libraries are slow for images of one or three channels. Here the patches of the image are gathered on the
fly as the rows of a matrix product, the pool normalises what it reads, and the gradient of the
convolution's output is computed where it is used and never stored. Sums are added up in a
fixed order, without atomics: the same input gives the same bits.

Layout: images (B, C, S, S) are channels first; everything after the convolution is a matrix of pixels x 64
channels: convolved (B H H, 64) with H = S / 2, pooled (B Q Q, 64) with Q = H / 2. M counts the pixels of
the convolution, N the pooled ones, K = 49 C the taps of a filter, KP the taps rounded up to blocks of 64.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def gather(images, b, y, x, is_pixel, taps, K, S):
    """Patches (pixels, taps): the input that tap (c, dy, dx) of the window reads at pixel (b, y, x)."""
    c, dy, dx = taps // 49, (taps // 7) % 7, taps % 7
    # Stride 2 and padding 3: output pixel y reads input rows 2 y - 3 .. 2 y + 3.
    row = 2 * y[:, None] + dy[None, :] - 3
    col = 2 * x[:, None] + dx[None, :] - 3
    # Zeros stand for the padding, for pixels that are none and for taps that only fill up a block.
    inside = (row >= 0) & (row < S) & (col >= 0) & (col < S)
    inside = inside & is_pixel[:, None] & (taps[None, :] < K)
    plane = b[:, None] * (K // 49) + c[None, :]
    return tl.load(images + (plane * S + row) * S + col, mask=inside, other=0.0)


@triton.jit
def convolve_kernel(
    images, filters, out, partial_sums, M, K, S, H, SPAN,
    KP: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """Convolve this program's pixels; write the sums of the results and of their squares (P, 2, 64)."""
    program = tl.program_id(0)
    cols = tl.arange(0, COLS)
    sum_x = tl.zeros((COLS,), tl.float32)
    sum_xx = tl.zeros((COLS,), tl.float32)
    for start in range(program * SPAN, min((program + 1) * SPAN, M), ROWS):
        pixels = start + tl.arange(0, ROWS)
        b, y, z = pixels // (H * H), (pixels // H) % H, pixels % H
        # out = patches (ROWS, K) @ filters^T (K, 64), 64 taps at a time, accumulated in float32.
        total = tl.zeros((ROWS, COLS), tl.float32)
        for k in range(0, KP, 64):
            taps = k + tl.arange(0, 64)
            patches = gather(images, b, y, z, pixels < M, taps, K, S)
            offsets = cols[None, :] * K + taps[:, None]
            block = tl.load(filters + offsets, mask=taps[:, None] < K, other=0.0)
            total = tl.dot(patches, block, total)
        rounded = total.to(out.dtype.element_ty)
        tl.store(out + pixels[:, None] * COLS + cols[None, :], rounded, mask=pixels[:, None] < M)
        # Statistics are of the rounded values: those are what the later kernels read and normalise.
        value = tl.where(pixels[:, None] < M, rounded.to(tl.float32), 0.0)
        sum_x += tl.sum(value, axis=0)
        sum_xx += tl.sum(value * value, axis=0)
    tl.store(partial_sums + program * 2 * COLS + cols, sum_x)
    tl.store(partial_sums + program * 2 * COLS + COLS + cols, sum_xx)


@triton.jit
def stats_kernel(
    partial_sums,
    stats,
    running_mean,
    running_var,
    M,
    eps,
    momentum,
    P: tl.constexpr,
    COLS: tl.constexpr,
):
    """Reduce partial sums to mean and 1 / std (2, 64), and update the running statistics."""
    # 16 channels a program: a block of all P x 64 partial sums would spill out of the registers.
    cols = tl.program_id(0) * 16 + tl.arange(0, 16)
    parts = tl.arange(0, P)[:, None] * 2 * COLS + cols[None, :]
    mean = tl.sum(tl.load(partial_sums + parts), axis=0) / M
    # E[x^2] - E[x]^2 can round to below 0.
    var = tl.maximum(tl.sum(tl.load(partial_sums + parts + COLS), axis=0) / M - mean * mean, 0.0)
    tl.store(stats + cols, mean)
    tl.store(stats + COLS + cols, 1.0 / tl.sqrt(var + eps))
    old = tl.load(running_mean + cols)
    tl.store(running_mean + cols, old + momentum * (mean - old))
    old = tl.load(running_var + cols)
    # The running variance is the unbiased one, as torch's.
    tl.store(running_var + cols, old + momentum * (var * (M / (M - 1.0)) - old))


@triton.jit
def pool_kernel(
    x, weight, bias, stats, out, argmax, winners, N, H, ROWS: tl.constexpr, COLS: tl.constexpr
):
    """Normalise, apply ReLU and max-pool 3 x 3; argmax: the tap (0 .. 8), or 9 where all are cut.

    The x of each maximum is kept as well, so that the backward pass need not look it up.
    """
    Q = H // 2
    pixels = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, COLS)
    b, y, z = pixels // (Q * Q), (pixels // Q) % Q, pixels % Q
    scale = tl.load(weight + cols) * tl.load(stats + COLS + cols)
    shift = tl.load(bias + cols) - tl.load(stats + cols) * scale
    # The maximum starts at 0, which is the ReLU. The scale may be negative, so values are normalised
    # before they are compared.
    best = tl.zeros((ROWS, COLS), tl.float32)
    which = tl.full((ROWS, COLS), 9, tl.int32)
    winner = tl.zeros((ROWS, COLS), x.dtype.element_ty)
    for tap in tl.static_range(9):
        row, col = 2 * y + tap // 3 - 1, 2 * z + tap % 3 - 1
        inside = (row >= 0) & (row < H) & (col >= 0) & (col < H) & (pixels < N)
        offsets = ((b * H + row) * H + col)[:, None] * COLS + cols[None, :]
        loaded = tl.load(x + offsets, mask=inside[:, None], other=0.0)
        value = loaded.to(tl.float32) * scale[None, :] + shift[None, :]
        # Padding must not win: a loaded 0 becomes `shift`, which may be above all real values.
        better = (value > best) & inside[:, None]
        best = tl.where(better, value, best)
        which = tl.where(better, tap, which)
        winner = tl.where(better, loaded, winner)
    offsets = pixels[:, None] * COLS + cols[None, :]
    tl.store(out + offsets, best.to(out.dtype.element_ty), mask=pixels[:, None] < N)
    tl.store(argmax + offsets, which.to(tl.int8), mask=pixels[:, None] < N)
    tl.store(winners + offsets, winner, mask=pixels[:, None] < N)


@triton.jit
def pool_sums_kernel(
    gradient, winners, argmax, stats, partial_sums, N, SPAN, ROWS: tl.constexpr, COLS: tl.constexpr
):
    """Write sum g and sum g x_hat (P, 2, 64), where g reaches the pixel that each pooled maximum came from.

    Summed over the pooled pixels: each has one source, so that no gradient needs to be scattered first.
    """
    program = tl.program_id(0)
    cols = tl.arange(0, COLS)
    mean = tl.load(stats + cols)
    inverse_std = tl.load(stats + COLS + cols)
    sum_g = tl.zeros((ROWS, COLS), tl.float32)
    sum_gd = tl.zeros((ROWS, COLS), tl.float32)
    for start in range(program * SPAN, min((program + 1) * SPAN, N), ROWS):
        pixels = start + tl.arange(0, ROWS)
        offsets = pixels[:, None] * COLS + cols[None, :]
        inside = pixels[:, None] < N
        tap = tl.load(argmax + offsets, mask=inside, other=9)
        g = tl.load(gradient + offsets, mask=inside, other=0.0).to(tl.float32)
        value = tl.load(winners + offsets, mask=inside, other=0.0).to(tl.float32)
        # Selected after the load: a load with a mask per element would be one instruction per element.
        g = tl.where(tap < 9, g, 0.0)
        sum_g += g
        sum_gd += g * (value - mean[None, :])
    tl.store(partial_sums + program * 2 * COLS + cols, tl.sum(sum_g, axis=0))
    tl.store(partial_sums + program * 2 * COLS + COLS + cols, tl.sum(sum_gd, axis=0) * inverse_std)


@triton.jit
def weight_gradient_kernel(
    gradient, x, argmax, images, weight, stats, sums, partial_gradients, N, K, S, H, SPAN,
    KP: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """Write this program's part of the gradient of the filters to partial_gradients (P, KP, 64).

    It is patches^T (taps, pixels) @ dx (pixels, 64), where dx = weight / std * (g - (sum g + x_hat
    sum(g x_hat)) / M) is the gradient of the convolution's output, of M = 4 N pixels.
    """
    Q = H // 2
    program = tl.program_id(0)
    cols = tl.arange(0, COLS)
    taps = tl.program_id(1) * 64 + tl.arange(0, 64)
    mean = tl.load(stats + cols)
    inverse_std = tl.load(stats + COLS + cols)
    scale = tl.load(weight + cols) * inverse_std
    # dx = scale g + slope (x - mean) + offset: no division per element.
    slope = -scale * inverse_std * tl.load(sums + COLS + cols) / (4 * N)
    offset = -scale * tl.load(sums + cols) / (4 * N)
    total = tl.zeros((64, COLS), tl.float32)
    for start in range(program * SPAN, min((program + 1) * SPAN, N), ROWS):
        # A window (i, j) of the pool has its middle at pixel (2 i, 2 j). The four pixels (2 i, 2 j) ..
        # (2 i + 1, 2 j + 1) are in no windows but this one and the next to the right, below and diagonally
        # below. Each window is read once for the four of them.
        windows = start + tl.arange(0, ROWS)
        b, i, j = windows // (Q * Q), (windows // Q) % Q, windows % Q
        inside = windows < N
        here, here_g = load_window(gradient, argmax, windows, inside, cols, COLS)
        has_right = inside & (j + 1 < Q)
        right, right_g = load_window(gradient, argmax, windows + 1, has_right, cols, COLS)
        has_below = inside & (i + 1 < Q)
        below, below_g = load_window(gradient, argmax, windows + Q, has_below, cols, COLS)
        last, last_g = load_window(
            gradient, argmax, windows + Q + 1, has_right & has_below, cols, COLS
        )
        for pixel in tl.static_range(4):
            g = add_windows(
                here, right, below, last, here_g, right_g, below_g, last_g,
                DOWN=pixel // 2, ACROSS=pixel % 2,
            )  # fmt: skip
            y, z = 2 * i + pixel // 2, 2 * j + pixel % 2
            offsets = ((b * H + y) * H + z)[:, None] * COLS + cols[None, :]
            value = tl.load(x + offsets, mask=inside[:, None], other=0.0).to(tl.float32)
            value = slope[None, :] * (value - mean[None, :]) + offset[None, :] + scale[None, :] * g
            # Beyond the last pixel dx is not 0, but the patch is: nothing is added.
            patches = gather(images, b, y, z, inside, taps, K, S)
            total = tl.dot(tl.trans(patches), value.to(x.dtype.element_ty), total)
    tl.store(partial_gradients + (program * KP + taps[:, None]) * COLS + cols[None, :], total)


@triton.jit
def load_window(gradient, argmax, windows, inside, cols, COLS: tl.constexpr):
    """Load argmax and gradient of windows; outside of the pool an argmax of 9, which is no tap."""
    offsets = windows[:, None] * COLS + cols[None, :]
    tap = tl.load(argmax + offsets, mask=inside[:, None], other=9)
    return tap, tl.load(gradient + offsets, mask=inside[:, None], other=0.0)


@triton.jit
def add_windows(
    here, right, below, last, here_g, right_g, below_g, last_g,
    DOWN: tl.constexpr, ACROSS: tl.constexpr,
):  # fmt: skip
    """The pool's backward pass at pixel (2 i + DOWN, 2 j + ACROSS): windows give to their argmax alone."""
    # The pixel's tap in window (i, j). In the window to the right it lies two columns of taps before, in
    # the window below two rows of three.
    TAP: tl.constexpr = 3 * (DOWN + 1) + ACROSS + 1
    g = tl.where(here == TAP, here_g, 0.0).to(tl.float32)
    if ACROSS:
        g += tl.where(right == TAP - 2, right_g, 0.0).to(tl.float32)
    if DOWN:
        g += tl.where(below == TAP - 6, below_g, 0.0).to(tl.float32)
    if DOWN and ACROSS:
        g += tl.where(last == TAP - 8, last_g, 0.0).to(tl.float32)
    return g
