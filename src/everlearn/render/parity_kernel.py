"""The Triton kernel of render.parity_cuda, the algorithm of render.parity; imported only on a GPU.

Two bit masks per image, one bit per pixel, take the place of the CPU's cells: `crossed`, where an odd
number of edges crosses the row between the pixel before and this one, and `boundary`, where a line is
drawn. Bit b of word w of a row is column 32 w + b. Bits are set by atomic xor and or, which give the same
mask in every order.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _word(mask, x, y, WORDS: tl.constexpr):
    return mask + y * WORDS + (x >> 5)


@triton.jit
def _set_boundary(boundary, x, y, live, SIZE: tl.constexpr, WORDS: tl.constexpr):
    """Set pixels of lines, where they are live and in the image."""
    live = live & (x >= 0) & (x < SIZE) & (y >= 0) & (y < SIZE)
    # Relaxed is enough, because a barrier separates the atomics from the reads.
    tl.atomic_or(_word(boundary, x, y, WORDS), 1 << (x & 31), mask=live, sem="relaxed")


@triton.jit
def _rounds_away(rest, n, base):
    """Return whether base +- rest / n rounds away from base; halves go to the even number."""
    return (2 * rest > n) | ((2 * rest == n) & ((base & 1) == 1))


@triton.jit
def _add_edges(
    crossed, boundary, xp, yp, xq, yq, live, SIZE: tl.constexpr, WORDS: tl.constexpr
):  # fmt: skip
    """Mark where edges cross rows and the pixels of their lines, except those of their ends.

    Step k of n, one per pixel of the longer axis, is at x + side * rest_x / n, y + rest_y / n. Both
    fractions are less than 1, and the one of the longer axis is 0. Edges of usual shapes take one step.
    """
    # From the upper end, a, to the lower one, b.
    swap = yp > yq
    x = tl.where(swap, xq, xp)
    y = tl.where(swap, yq, yp)
    xb = tl.where(swap, xp, xq)
    side = tl.where(xb > x, 1, -1)
    width = tl.abs(xb - x)
    height = tl.abs(yq - yp)
    n = tl.where(live, tl.maximum(width, height), 0)
    rest_x = tl.zeros_like(x)
    rest_y = tl.zeros_like(x)
    # Rows y .. yb - 1 are crossed: half-open, so that a vertex is counted once.
    new_row = height > 0
    for k in range(0, tl.max(n, axis=0)):
        running = k < n
        # The first column at or right of the crossing, which lies between steps k - 1 and k.
        column = x + tl.where(tl.where(side > 0, rest_x, rest_y) > 0, 1, 0)
        column = tl.maximum(column, 0)
        crosses = running & new_row & (column < SIZE) & (y >= 0) & (y < SIZE)
        tl.atomic_xor(
            _word(crossed, column, y, WORDS), 1 << (column & 31), mask=crosses, sem="relaxed"
        )
        line_x = tl.where(_rounds_away(rest_x, n, x), x + side, x)
        line_y = tl.where(_rounds_away(rest_y, n, y), y + 1, y)
        _set_boundary(boundary, line_x, line_y, running & (k > 0), SIZE, WORDS)
        rest_x += width
        x = tl.where(rest_x >= n, x + side, x)
        rest_x = tl.where(rest_x >= n, rest_x - n, rest_x)
        rest_y += height
        new_row = rest_y >= n
        y = tl.where(new_row, y + 1, y)
        rest_y = tl.where(new_row, rest_y - n, rest_y)


@triton.jit
def draw_kernel(
    points, which, maps, color, frame, values, masks, out,
    POINTS: tl.constexpr, SIZE: tl.constexpr, WORDS: tl.constexpr, WIDTH: tl.constexpr,
    ROWS: tl.constexpr, CHANNELS: tl.constexpr, EDGES: tl.constexpr,
):  # fmt: skip
    """Render one image per program.

    `masks` is (B, 2, SIZE, WORDS) int32, `out` (B, CHANNELS, SIZE, SIZE). WIDTH is WORDS rounded up to a
    power of two, which Triton needs, and ROWS image rows make a tile. Launch with enable_fp_fusion=False:
    a product and a sum fused to one rounding would differ from the CPU in the last bit.
    """
    tl.static_assert(maps.dtype.element_ty == tl.float64, "vertices need float64 maps")
    image = tl.program_id(0)
    # int64: large batches have more than 2^31 pixels.
    crossed = masks + image.to(tl.int64) * (2 * SIZE * WORDS)
    boundary = crossed + SIZE * WORDS

    # 1. Clear the masks. The barrier keeps all threads out of step 2 until then.
    for first in range(0, 2 * SIZE * WORDS, EDGES):
        at = first + tl.arange(0, EDGES)
        tl.store(crossed + at, tl.zeros((EDGES,), tl.int32), mask=at < 2 * SIZE * WORDS)
    tl.debug_barrier()

    # 2. Mark every edge, EDGES of them at a time. Vertices are truncated towards zero. `frame` holds the
    # side of the box and half the side of the image, in pixels: as arguments they would be float32.
    m = maps + image * 6
    box = tl.load(frame)
    middle = tl.load(frame + 1)
    cosine = tl.load(m)
    sine = tl.load(m + 3)
    xx = box * cosine
    xy = box * tl.load(m + 1)
    center_x = (tl.load(m + 2) + 1.0) * middle
    yx = box * sine
    yy = box * tl.load(m + 4)
    center_y = (tl.load(m + 5) + 1.0) * middle
    curve = points + tl.load(which + image).to(tl.int64) * (2 * POINTS)
    for first in range(0, POINTS, EDGES):
        p = first + tl.arange(0, EDGES)
        live = p < POINTS
        q = tl.where(p + 1 < POINTS, p + 1, 0)
        px = tl.load(curve + 2 * p, mask=live, other=0.0)
        py = tl.load(curve + 2 * p + 1, mask=live, other=0.0)
        qx = tl.load(curve + 2 * q, mask=live, other=0.0)
        qy = tl.load(curve + 2 * q + 1, mask=live, other=0.0)
        xp = (px * xx + py * xy + center_x).to(tl.int32)
        yp = (px * yx + py * yy + center_y).to(tl.int32)
        xq = (qx * xx + qy * xy + center_x).to(tl.int32)
        yq = (qx * yx + qy * yy + center_y).to(tl.int32)
        # Of equal vertices in a row the last one sets the pixel; all of a shape's may be equal.
        last = live & ((xp != xq) | (yp != yq) | (p == 0))
        _set_boundary(boundary, xp, yp, last, SIZE, WORDS)
        _add_edges(crossed, boundary, xp, yp, xq, yq, live, SIZE, WORDS)
    tl.debug_barrier()

    # 3. Turn the masks into pixels.
    word = tl.arange(0, WIDTH)[None, :]
    bit = tl.arange(0, 32)[None, None, :]
    column = tl.arange(0, WIDTH)[None, :, None] * 32 + bit
    horizontal = cosine * (column.to(tl.float64) - center_x)
    table = values + tl.load(color + image) * (3 * CHANNELS)
    pixels = out + image.to(tl.int64) * (CHANNELS * SIZE * SIZE)
    for top in range(0, SIZE, ROWS):
        row = top + tl.arange(0, ROWS)[:, None]
        at = row * WORDS + word
        stored = (row < SIZE) & (word < WORDS)
        # Atomics update the L2 cache: .cg reads there, past an L1 that may hold the zeros of step 1.
        inside = tl.load(crossed + at, mask=stored, other=0, cache_modifier=".cg")
        drawn = tl.load(boundary + at, mask=stored, other=0, cache_modifier=".cg")
        # Parity of the crossings up to each bit: inside the word by doubling, then of the words before.
        inside ^= inside << 1
        inside ^= inside << 2
        inside ^= inside << 4
        inside ^= inside << 8
        inside ^= inside << 16
        odd = (inside >> 31) & 1
        before = (tl.cumsum(odd, axis=1) - odd) & 1
        filled = (inside ^ -before) | drawn
        shown = ((filled[:, :, None] >> bit) & 1) == 1  # (ROWS, WIDTH, 32)
        line = row[:, :, None]
        marked = horizontal + sine * (line.to(tl.float64) - center_y) > 0
        at_pixel = line * SIZE + column
        in_image = (line < SIZE) & (column < SIZE)
        for channel in tl.static_range(CHANNELS):
            background = tl.load(table + 3 * channel)
            shape = tl.load(table + 3 * channel + 1)
            mark = tl.load(table + 3 * channel + 2)
            value = tl.where(shown, tl.where(marked, mark, shape), background)
            tl.store(pixels + channel * SIZE * SIZE + at_pixel, value, mask=in_image)
