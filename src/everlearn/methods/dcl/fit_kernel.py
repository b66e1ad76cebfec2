"""A Triton kernel that fits exemplars to images, as `fit.fit` does, with one program per pair.

`fit.fit` writes drawn exemplars, gradients and Jacobians to memory in every step. Here each program keeps
the sums of its pair in registers and writes only the drawn exemplar, which stays in the cache.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 256  # pixels that a program handles at once; more would take too many registers
_WARPS = 1


def fit(
    images: Tensor,
    weights: Tensor,
    rows: Tensor,
    exemplars: Tensor,
    maps: Tensor,
    steps: int,
    ridge: float,
) -> tuple[Tensor, Tensor]:
    """Return the smallest mean squared errors (P,) of pairs, and the maps (P, 2, 3) that gave them.

    Args:
        images: (N, C, H, W) float32.
        weights: (N, C, H, W) float32, of the residuals.
        rows: (P,) the image of each pair.
        exemplars: (P, C, H, W) uint8.
        maps: (N, 2, 3), from exemplar to image, the first guess.
    """
    _, channels, height, width = images.shape
    errors = images.new_empty(len(rows))
    best_maps = maps.new_empty((len(rows), 2, 3))
    drawings = torch.empty(exemplars.shape, device=images.device)
    if len(rows):
        with torch.cuda.device_of(images):
            fit_kernel[(len(rows),)](
                images.contiguous(), weights.contiguous(), rows, exemplars.contiguous(),
                maps.contiguous(), drawings, errors, best_maps, ridge,
                C=channels, H=height, W=width, STEPS=steps, BLOCK=_BLOCK, num_warps=_WARPS,
            )  # fmt: skip
    return errors, best_maps


@triton.jit
def fit_kernel(
    images, weights, rows, exemplars, maps, drawings, errors, best_maps, ridge,
    C: tl.constexpr, H: tl.constexpr, W: tl.constexpr, STEPS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Draw one exemplar into its image and align it, as `fit.fit` and `fit.gauss_newton_step` do."""
    pair = tl.program_id(0).to(tl.int64)  # 64 bits: pair * C * H * W may exceed 2^31
    size: tl.constexpr = H * W
    row_of_image = tl.load(rows + pair)
    image = images + row_of_image * C * size
    weight_map = weights + row_of_image * C * size
    exemplar = exemplars + pair * C * size
    drawing = drawings + pair * C * size
    # The current map [[a, b, c], [d, e, f]] from image to exemplar, and the best one so far (best_a ...).
    # Triton has no small matrices in registers, so each entry is a scalar.
    maps += row_of_image * 6
    a, b, c, d, e, f = invert(
        tl.load(maps), tl.load(maps + 1), tl.load(maps + 2),
        tl.load(maps + 3), tl.load(maps + 4), tl.load(maps + 5),
    )  # fmt: skip
    best_a, best_b, best_c, best_d, best_e, best_f = a, b, c, d, e, f
    best = float("inf")
    # Unrolled, so that the last pass, which only measures the error, has no code for a step.
    for step in tl.static_range(STEPS + 1):
        draw(exemplar, drawing, a, b, c, d, e, f, C, H, W, BLOCK)
        tl.debug_barrier()  # gradients read pixels that other threads have drawn
        # One partial sum per lane, reduced over lanes once after all pixels: the squared error, the upper
        # triangle of the Hessian J^T J (hij) and the right side J^T (image - drawn) (ri). The four
        # columns of the Jacobian J are scale, angle, x and y. Residuals and gradients are weighted.
        zero = tl.zeros((BLOCK,), tl.float32)
        error = zero
        h00, h01, h02, h03, h11 = zero, zero, zero, zero, zero
        h12, h13, h22, h23, h33 = zero, zero, zero, zero, zero
        r0, r1, r2, r3 = zero, zero, zero, zero
        for start in range(0, size, BLOCK):
            pixel_id = start + tl.arange(0, BLOCK)
            inside = pixel_id < size
            row, col = pixel_id // W, pixel_id % W
            for channel in tl.static_range(C):
                drawn = drawing + channel * size
                value = tl.load(image + channel * size + pixel_id, mask=inside, other=0.0)
                # Lanes beyond the last pixel must add nothing: their weight is 0.
                weight = tl.load(weight_map + channel * size + pixel_id, mask=inside, other=0.0)
                residual = weight * (value - tl.load(drawn + pixel_id, mask=inside, other=0.0))
                error += residual * residual
                if step < STEPS:
                    to_x, to_y = image_gradients(drawn, row, col, inside, H, W)
                    to_x, to_y = weight * to_x, weight * to_y
                    x, y = pixel_center(col, W), pixel_center(row, H)
                    scale, angle = to_x * x + to_y * y, to_y * x - to_x * y
                    h00, h01 = h00 + scale * scale, h01 + scale * angle
                    h02, h03 = h02 + scale * to_x, h03 + scale * to_y
                    h11, h12, h13 = h11 + angle * angle, h12 + angle * to_x, h13 + angle * to_y
                    h22, h23, h33 = h22 + to_x * to_x, h23 + to_x * to_y, h33 + to_y * to_y
                    r0, r1 = r0 + scale * residual, r1 + angle * residual
                    r2, r3 = r2 + to_x * residual, r3 + to_y * residual
        tl.debug_barrier()  # the next pass draws over what this one reads
        mean = tl.sum(error) / (C * size)
        better = mean < best  # False for NaN, so a map that went astray is never kept
        best = tl.where(better, mean, best)
        best_a, best_b = tl.where(better, a, best_a), tl.where(better, b, best_b)
        best_c, best_d = tl.where(better, c, best_c), tl.where(better, d, best_d)
        best_e, best_f = tl.where(better, e, best_e), tl.where(better, f, best_f)
        if step < STEPS:
            # The ridge keeps the system solvable where an exemplar is symmetric or uniform.
            s00, s11, s22, s33 = tl.sum(h00), tl.sum(h11), tl.sum(h22), tl.sum(h33)
            damping = ridge * (s00 + s11 + s22 + s33) / 4 + 1e-12
            grow, turn, right, down = solve(
                s00 + damping, tl.sum(h01), tl.sum(h02), tl.sum(h03),
                s11 + damping, tl.sum(h12), tl.sum(h13),
                s22 + damping, tl.sum(h23), s33 + damping,
                tl.sum(r0), tl.sum(r1), tl.sum(r2), tl.sum(r3),
            )  # fmt: skip
            # The map times [[1 + grow, -turn, right], [turn, 1 + grow, down]]. Translations first: they
            # need the old a, b, d and e.
            c, f = a * right + b * down + c, d * right + e * down + f
            a, b = a * (1 + grow) + b * turn, b * (1 + grow) - a * turn
            d, e = d * (1 + grow) + e * turn, e * (1 + grow) - d * turn
    tl.store(errors + pair, best)
    best_a, best_b, best_c, best_d, best_e, best_f = invert(
        best_a, best_b, best_c, best_d, best_e, best_f
    )
    best_maps += pair * 6
    tl.store(best_maps, best_a)
    tl.store(best_maps + 1, best_b)
    tl.store(best_maps + 2, best_c)
    tl.store(best_maps + 3, best_d)
    tl.store(best_maps + 4, best_e)
    tl.store(best_maps + 5, best_f)


@triton.jit
def invert(a, b, c, d, e, f):
    """Return the inverse of a map, as `render.affine.invert` does."""
    # div_rn rounds correctly, as PyTorch does; Triton's `/` may be off by one bit.
    determinant = a * e - b * d
    inverse_a, inverse_b = tl.div_rn(e, determinant), tl.div_rn(-b, determinant)
    inverse_d, inverse_e = tl.div_rn(-d, determinant), tl.div_rn(a, determinant)
    inverse_c = -inverse_a * c - inverse_b * f
    inverse_f = -inverse_d * c - inverse_e * f
    return inverse_a, inverse_b, inverse_c, inverse_d, inverse_e, inverse_f


@triton.jit
def draw(
    exemplar, drawing, a, b, c, d, e, f,
    C: tl.constexpr, H: tl.constexpr, W: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write an exemplar as a map places it in the image."""
    for start in range(0, H * W, BLOCK):
        pixel_id = start + tl.arange(0, BLOCK)
        inside = pixel_id < H * W
        row, col = pixel_id // W, pixel_id % W
        for channel in tl.static_range(C):
            plane = channel * H * W
            drawn = sample(exemplar + plane, row, col, inside, a, b, c, d, e, f, H, W)
            tl.store(drawing + plane + pixel_id, drawn, mask=inside)


@triton.jit
def image_gradients(drawn, row, col, inside, H: tl.constexpr, W: tl.constexpr):
    """Central differences of a drawn exemplar along x and y, as in `fit.image_gradients`; 0 outside."""
    left, right = tl.maximum(col - 1, 0), tl.minimum(col + 1, W - 1)
    above, below = tl.maximum(row - 1, 0), tl.minimum(row + 1, H - 1)
    to_x = tl.load(drawn + row * W + right, mask=inside, other=0.0)
    to_x -= tl.load(drawn + row * W + left, mask=inside, other=0.0)
    to_y = tl.load(drawn + below * W + col, mask=inside, other=0.0)
    to_y -= tl.load(drawn + above * W + col, mask=inside, other=0.0)
    # Pixels are 2 / W apart and neighbours twice that: the difference quotient is times W / 4.
    return to_x * (W / 4.0), to_y * (H / 4.0)


@triton.jit
def sample(picture, row, col, inside, a, b, c, d, e, f, H: tl.constexpr, W: tl.constexpr):
    """Sample a uint8 picture where a map sends the centre of a pixel: bilinear, the border repeated."""
    x, y = pixel_center(col, W), pixel_center(row, H)
    # maximum() returns the other operand for NaN, so every address is inside the picture.
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
    return (above * (1 - to_bottom) + below * to_bottom) * (1 / 255.0)


@triton.jit
def pixel(picture, row, col, inside, W: tl.constexpr):
    """Load a pixel, from 0 to 255."""
    return tl.load(picture + row * W + col, mask=inside, other=0).to(tl.float32)


@triton.jit
def pixel_center(index, side: tl.constexpr):
    """Return the centre of a pixel, from -1 to 1."""
    return (2 * index + 1).to(tl.float32) * (1.0 / side) - 1.0


@triton.jit
def solve(h00, h01, h02, h03, h11, h12, h13, h22, h23, h33, r0, r1, r2, r3):
    """Solve H x = r for a symmetric positive definite H (4, 4), given by its upper triangle.

    Gaussian elimination without pivoting, which is stable for such matrices. Only the upper triangle is
    updated, because elimination keeps the rest symmetric.
    """
    m = h01 / h00
    h11, h12, h13, r1 = h11 - m * h01, h12 - m * h02, h13 - m * h03, r1 - m * r0
    m = h02 / h00
    h22, h23, r2 = h22 - m * h02, h23 - m * h03, r2 - m * r0
    m = h03 / h00
    h33, r3 = h33 - m * h03, r3 - m * r0
    m = h12 / h11
    h22, h23, r2 = h22 - m * h12, h23 - m * h13, r2 - m * r1
    m = h13 / h11
    h33, r3 = h33 - m * h13, r3 - m * r1
    m = h23 / h22
    h33, r3 = h33 - m * h23, r3 - m * r2
    x3 = r3 / h33
    x2 = (r2 - h23 * x3) / h22
    x1 = (r1 - h12 * x2 - h13 * x3) / h11
    return (r0 - h01 * x1 - h02 * x2 - h03 * x3) / h00, x1, x2, x3
