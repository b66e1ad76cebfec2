"""The Triton kernel behind render.cuda. Imported only where there is a GPU."""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _add_cell(row, cell, twice_x, dy, weight, cells, live, SIZE: tl.constexpr):
    """The cell gets the part of the edge's height right of it; every later cell gets all of it."""
    live = live & (dy != 0) & (cell < SIZE)
    right = tl.where(cell < 0, 0, twice_x - (cell << 11))
    column = tl.maximum(cell, 0)
    amount = weight * dy
    at = cells + row * SIZE + column
    tl.atomic_add(at, amount * (2048 - right), mask=live & (right < 2048), sem="relaxed")
    tl.atomic_add(
        at + 1, amount * right, mask=live & (right > 0) & (column + 1 < SIZE), sem="relaxed"
    )


@triton.jit
def _add_row(row, xa, xb, dy, weight, cells, live, SIZE: tl.constexpr):
    """Add an edge that stays in one row and passes at most one column border."""
    live = live & (row >= 0) & (row < SIZE)
    left, right = tl.minimum(xa, xb), tl.maximum(xa, xb)
    cell = left >> 10
    border = tl.minimum((cell + 1) << 10, right)
    span = tl.maximum(right - left, 1).to(tl.float32)
    share = tl.floor((border - left).to(tl.float32) * (dy.to(tl.float32) / span) + 0.5).to(tl.int32)
    share = tl.where(border == right, dy, share)
    _add_cell(row, cell, left + border, share, weight, cells, live, SIZE)
    _add_cell(row, cell + 1, border + right, dy - share, weight, cells, live, SIZE)


@triton.jit
def draw_kernel(
    points, kinds, starts, which, maps, color, table, area, out, box, middle,
    SIZE: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr,
    EDGES: tl.constexpr, FLOAT: tl.constexpr,
):  # fmt: skip
    """Draw one channel of one image."""
    image, channel = tl.program_id(0), tl.program_id(1)
    offset = (image.to(tl.int64) * CHANNELS + channel) * SIZE * SIZE
    cells = area + offset
    row_index = tl.arange(0, ROWS)[:, None]
    column_index = tl.arange(0, WIDTH)[None, :]
    for top in range(0, SIZE, ROWS):
        row = top + row_index
        at = cells + row * SIZE + column_index
        zero = tl.zeros((ROWS, WIDTH), tl.int32)
        tl.store(at, zero, mask=(row < SIZE) & (column_index < SIZE))
    tl.debug_barrier()

    shape = tl.load(which + image)
    start, end = tl.load(starts + shape), tl.load(starts + shape + 1) - 1
    levels = table + (tl.load(color + image) * CHANNELS + channel) * 4
    m = maps + image * 6
    xx, xy, x0 = tl.load(m) * box, tl.load(m + 1) * box, (tl.load(m + 2) + 1.0) * middle
    yx, yy, y0 = tl.load(m + 3) * box, tl.load(m + 4) * box, (tl.load(m + 5) + 1.0) * middle
    for first in range(start, end, EDGES):
        edge = first + tl.arange(0, EDGES)
        live = edge < end
        kind = tl.load(kinds + edge, mask=live, other=0)
        weight = -tl.load(levels + kind)
        live = live & (kind > 0) & (weight != 0)
        px, py = tl.load(points + 2 * edge, mask=live), tl.load(points + 2 * edge + 1, mask=live)
        qx, qy = (
            tl.load(points + 2 * edge + 2, mask=live),
            tl.load(points + 2 * edge + 3, mask=live),
        )
        xp = tl.floor((xx * px + xy * py + x0) * 1024.0 + 0.5).to(tl.int32)
        yp = tl.floor((yx * px + yy * py + y0) * 1024.0 + 0.5).to(tl.int32)
        xq = tl.floor((xx * qx + xy * qy + x0) * 1024.0 + 0.5).to(tl.int32)
        yq = tl.floor((yx * qx + yy * qy + y0) * 1024.0 + 0.5).to(tl.int32)
        down = yp < yq
        weight = tl.where(down, weight, -weight)
        xa, ya = tl.where(down, xp, xq), tl.where(down, yp, yq)
        xb, yb = tl.where(down, xq, xp), tl.where(down, yq, yp)
        row = ya >> 10
        border = tl.minimum((row + 1) << 10, yb)
        slope = (xb - xa).to(tl.float32) / tl.maximum(yb - ya, 1).to(tl.float32)
        between = xa + tl.floor((border - ya).to(tl.float32) * slope + 0.5).to(tl.int32)
        between = tl.where(border == yb, xb, between)
        _add_row(row, xa, between, border - ya, weight, cells, live, SIZE)
        _add_row(row + 1, between, xb, yb - border, weight, cells, live, SIZE)
    tl.debug_barrier()

    background = tl.load(levels)
    for top in range(0, SIZE, ROWS):
        row = top + row_index
        inside = (row < SIZE) & (column_index < SIZE)
        at = row * SIZE + column_index
        # Atomic sums live in the second-level cache: read them there, past the first level.
        added = tl.load(cells + at, mask=inside, other=0, cache_modifier=".cg")
        total = tl.cumsum(added, axis=1) + (background << 21) + (1 << 20)
        level = tl.minimum(tl.maximum(total >> 21, 0), 255)
        if FLOAT:
            tl.store(out + offset + at, tl.div_rn(level.to(tl.float32), 255.0), mask=inside)
        else:
            tl.store(out + offset + at, level.to(tl.uint8), mask=inside)
