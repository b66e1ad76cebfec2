"""Triton kernels of batch normalisation with its addition and ReLU, for channels-last tensors.

A tensor (B, C, H, W) in channels-last memory is a row-major matrix of M = B H W rows and C columns. Program
(p, c) handles SPAN rows from row p * SPAN, ROWS at a time, of COLS columns from column c * COLS. A
reduction over rows takes two kernels: the first writes one partial sum per program, the second adds them
up in a fixed order. The order of atomic additions, and with it the last bits, would differ between runs.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def sums_kernel(
    x, partial_sums, M, C, SPAN, ROWS: tl.constexpr, COLS: tl.constexpr, STAGES: tl.constexpr
):
    """Write sum x and sum x^2 over this program's rows to partial_sums (P, 2, C)."""
    program = tl.program_id(0)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    # One float32 accumulator per loaded element, reduced once at the end: bfloat16 would lose small terms.
    sum_x = tl.zeros((ROWS, COLS), tl.float32)
    sum_xx = tl.zeros((ROWS, COLS), tl.float32)
    first = program * SPAN
    for start in tl.range(first, min(first + SPAN, M), ROWS, num_stages=STAGES):
        rows = start + tl.arange(0, ROWS)
        offsets = rows[:, None] * C + cols[None, :]
        # Rows beyond M are read as 0, which adds nothing to either sum.
        value = tl.load(x + offsets, mask=rows[:, None] < M, other=0.0).to(tl.float32)
        sum_x += value
        sum_xx += value * value
    tl.store(partial_sums + program * 2 * C + cols, tl.sum(sum_x, axis=0))
    tl.store(partial_sums + program * 2 * C + C + cols, tl.sum(sum_xx, axis=0))


@triton.jit
def add_parts(partial_sums, cols, C, P: tl.constexpr):
    """Add up partial sums (P, 2, C) in the same order in every program: cheaper than a third kernel."""
    parts = tl.arange(0, P)[:, None] * 2 * C + cols[None, :]
    first = tl.load(partial_sums + parts)
    second = tl.load(partial_sums + parts + C)
    return tl.sum(first, axis=0), tl.sum(second, axis=0)


@triton.jit
def normalize_kernel(
    x, residual, weight, bias, partial_sums, out, stats, running_mean, running_var, M, C, SPAN, eps,
    momentum,
    P: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr, STAGES: tl.constexpr, ADD: tl.constexpr,
    RELU: tl.constexpr,
):  # fmt: skip
    """out = relu(weight (x - mean) / sqrt(var + eps) + bias + residual); save stats (2, C) for backward."""
    program = tl.program_id(0)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    sum_x, sum_xx = add_parts(partial_sums, cols, C, P)
    mean = sum_x / M
    # var = E[x^2] - E[x]^2 can round to below 0 where x hardly varies.
    var = tl.maximum(sum_xx / M - mean * mean, 0.0)
    inverse_std = 1.0 / tl.sqrt(var + eps)
    # One multiplication and one addition per element: x * scale + shift.
    scale = tl.load(weight + cols) * inverse_std
    shift = tl.load(bias + cols) - mean * scale
    # One program of a block of columns updates the running statistics: more would move them more than once.
    if program == 0:
        tl.store(stats + cols, mean)
        tl.store(stats + C + cols, inverse_std)
        old = tl.load(running_mean + cols)
        tl.store(running_mean + cols, old + momentum * (mean - old))
        old = tl.load(running_var + cols)
        # As torch does: the running variance is the unbiased one, the normalisation uses the biased one.
        tl.store(running_var + cols, old + momentum * (var * (M / (M - 1.0)) - old))
    first = program * SPAN
    for start in tl.range(first, min(first + SPAN, M), ROWS, num_stages=STAGES):
        rows = start + tl.arange(0, ROWS)
        offsets = rows[:, None] * C + cols[None, :]
        inside = rows[:, None] < M
        write_block(x, residual, out, offsets, inside, scale, shift, ADD, RELU)


@triton.jit
def write_block(
    x, residual, out, offsets, inside, scale, shift, ADD: tl.constexpr, RELU: tl.constexpr
):
    """out = relu(x * scale + shift + residual) for one block, in float32 until it is stored."""
    value = tl.load(x + offsets, mask=inside, other=0.0).to(tl.float32)
    value = value * scale[None, :] + shift[None, :]
    if ADD:
        value += tl.load(residual + offsets, mask=inside, other=0.0).to(tl.float32)
    if RELU:
        value = tl.maximum(value, 0.0)
    tl.store(out + offsets, value.to(out.dtype.element_ty), mask=inside)


@triton.jit
def instance_norm_kernel(
    x, residual, weight, bias, running_mean, running_var, out, M, C, eps, instance_weight,
    ROWS: tl.constexpr, COLS: tl.constexpr, ADD: tl.constexpr, RELU: tl.constexpr,
):  # fmt: skip
    """Normalise one image by a mixture of running and instance statistics; M = H W.

    A program has all rows of its image, so that statistics and normalisation need one kernel: the second
    loop reads what the first one left in the cache.
    """
    image = tl.program_id(0)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    center = tl.load(running_mean + cols)
    sum_d = tl.zeros((ROWS, COLS), tl.float32)
    sum_dd = tl.zeros((ROWS, COLS), tl.float32)
    for start in range(0, M, ROWS):
        rows = start + tl.arange(0, ROWS)
        offsets = (image * M + rows[:, None]) * C + cols[None, :]
        inside = rows[:, None] < M
        value = tl.load(x + offsets, mask=inside, other=0.0).to(tl.float32)
        # Differences d = x - running mean keep E[d^2] - E[d]^2 from cancelling. Rows outside the image
        # would be 0 - running mean here, so they are set to 0 after the subtraction.
        value = tl.where(inside, value - center[None, :], 0.0)
        sum_d += value
        sum_dd += value * value
    offset = tl.sum(sum_d, axis=0) / M
    image_var = tl.maximum(tl.sum(sum_dd, axis=0) / M - offset * offset, 0.0)
    # A mixture of weight a has the mean running mean + a offset and the variance
    # (1 - a) (running var + a offset^2) + a image var.
    a = instance_weight
    var = (1.0 - a) * (tl.load(running_var + cols) + a * offset * offset) + a * image_var
    scale = tl.load(weight + cols) / tl.sqrt(var + eps)
    shift = tl.load(bias + cols) - (center + a * offset) * scale
    for start in range(0, M, ROWS):
        rows = start + tl.arange(0, ROWS)
        offsets = (image * M + rows[:, None]) * C + cols[None, :]
        inside = rows[:, None] < M
        write_block(x, residual, out, offsets, inside, scale, shift, ADD, RELU)


@triton.jit
def gradient_sums_kernel(
    gradient, x, out, weight, bias, stats, masked_gradient, partial_sums, M, C, SPAN,
    ROWS: tl.constexpr, COLS: tl.constexpr, STAGES: tl.constexpr, ADD: tl.constexpr,
    RELU: tl.constexpr,
):  # fmt: skip
    """Write sum g and sum g x_hat to partial_sums (P, 2, C); g is the gradient where the ReLU let it pass.

    These are the gradients of bias and weight, and both appear in the gradient of x. Where a residual was
    added before a ReLU (ADD), g is also written: it is the gradient of the residual.
    """
    program = tl.program_id(0)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    mean = tl.load(stats + cols)
    inverse_std = tl.load(stats + C + cols)
    scale = tl.load(weight + cols) * inverse_std
    shift = tl.load(bias + cols) - mean * scale
    sum_g = tl.zeros((ROWS, COLS), tl.float32)
    sum_gd = tl.zeros((ROWS, COLS), tl.float32)
    first = program * SPAN
    for start in tl.range(first, min(first + SPAN, M), ROWS, num_stages=STAGES):
        rows = start + tl.arange(0, ROWS)
        offsets = rows[:, None] * C + cols[None, :]
        inside = rows[:, None] < M
        g = tl.load(gradient + offsets, mask=inside, other=0.0)
        value = tl.load(x + offsets, mask=inside, other=0.0).to(tl.float32)
        if ADD:
            # With a residual, the output itself tells where the ReLU was open.
            g = tl.where(tl.load(out + offsets, mask=inside, other=0.0) > 0, g, 0.0)
            tl.store(masked_gradient + offsets, g, mask=inside)
        elif RELU:
            g = mask_gradient(g, value, scale, shift)
        g = g.to(tl.float32)
        sum_g += g
        sum_gd += g * (value - mean[None, :])
    tl.store(partial_sums + program * 2 * C + cols, tl.sum(sum_g, axis=0))
    # x_hat = (x - mean) * inverse_std; the factor is the same for all rows and is applied once.
    tl.store(partial_sums + program * 2 * C + C + cols, tl.sum(sum_gd, axis=0) * inverse_std)


@triton.jit
def mask_gradient(g, value, scale, shift):
    """Return the gradient where the ReLU was open: its sign follows from x, so that no output is read."""
    return tl.where(value * scale[None, :] + shift[None, :] > 0, g, 0.0)


@triton.jit
def gradient_kernel(
    gradient, x, weight, bias, stats, partial_sums, x_gradient, weight_gradient, bias_gradient,
    M, C, SPAN,
    P: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr, STAGES: tl.constexpr,
    RELU: tl.constexpr,
):  # fmt: skip
    """Write the gradients of x, weight and bias.

    dx = weight / std * (g - (sum g + x_hat sum(g x_hat)) / M), as batch statistics depend on every x.
    """
    program = tl.program_id(0)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    sum_g, sum_gx = add_parts(partial_sums, cols, C, P)
    mean = tl.load(stats + cols)
    inverse_std = tl.load(stats + C + cols)
    scale = tl.load(weight + cols) * inverse_std
    shift = tl.load(bias + cols) - mean * scale
    # dx = scale g + slope (x - mean) + offset: no division per element.
    slope = -scale * inverse_std * sum_gx / M
    offset = -scale * sum_g / M
    # All programs of a block of columns have the same sums; one writes them.
    if program == 0:
        tl.store(bias_gradient + cols, sum_g)
        tl.store(weight_gradient + cols, sum_gx)
    first = program * SPAN
    for start in tl.range(first, min(first + SPAN, M), ROWS, num_stages=STAGES):
        rows = start + tl.arange(0, ROWS)
        offsets = rows[:, None] * C + cols[None, :]
        inside = rows[:, None] < M
        g = tl.load(gradient + offsets, mask=inside, other=0.0)
        value = tl.load(x + offsets, mask=inside, other=0.0).to(tl.float32)
        if RELU:
            g = mask_gradient(g, value, scale, shift)
        value = slope[None, :] * (value - mean[None, :]) + offset[None, :]
        value += scale[None, :] * g.to(tl.float32)
        tl.store(x_gradient + offsets, value.to(x_gradient.dtype.element_ty), mask=inside)
