"""The Triton kernel of render.cuda. Imported only where there is a GPU.

Fixed point: coordinates are in 1/1024 pixel (`>> 10` gives the pixel), and coverage in twice the area of
a subpixel, so that a covered pixel is 2 * 1024 * 1024 = 2^21. Times a level of up to 255 it fits in int32.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _add_cell(row, cell, twice_x, dy, weight, cells, live, SIZE: tl.constexpr):
    """Add the part of an edge inside one cell: height dy, mean x twice_x / 2.

    The cell gains the area between the edge and its right side, and the next cell the rest, so that
    the running sum along the row gives every later cell the full height.
    """
    live = live & (dy != 0) & (cell < SIZE)
    # Left of the image, an edge counts as if it ran along the left border; right of it, not at all.
    right = tl.where(cell < 0, 0, twice_x - (cell << 11))
    column = tl.maximum(cell, 0)
    amount = weight * dy
    at = cells + row * SIZE + column
    # Many edges may share a cell, hence atomics. Integer sums do not depend on their order. Relaxed is
    # enough, because a barrier separates them from the reads. Zero contributions are masked out.
    tl.atomic_add(at, amount * (2048 - right), mask=live & (right < 2048), sem="relaxed")
    tl.atomic_add(
        at + 1, amount * right, mask=live & (right > 0) & (column + 1 < SIZE), sem="relaxed"
    )


@triton.jit
def _add_row(row, xa, xb, dy, weight, cells, live, SIZE: tl.constexpr):
    """Add the part of an edge inside one row; it is shorter than a pixel, so it spans at most two cells."""
    live = live & (row >= 0) & (row < SIZE)
    left = tl.minimum(xa, xb)
    right = tl.maximum(xa, xb)
    cell = left >> 10
    border = tl.minimum((cell + 1) << 10, right)
    # Height of the part left of the border. Floor of x + 0.5 rounds to nearest; the maximum avoids 0 / 0.
    span = tl.maximum(right - left, 1).to(tl.float32)
    share = tl.floor((border - left).to(tl.float32) * (dy.to(tl.float32) / span) + 0.5).to(tl.int32)
    # An edge inside one cell contributes all its height there, whatever the rounding.
    share = tl.where(border == right, dy, share)
    _add_cell(row, cell, left + border, share, weight, cells, live, SIZE)
    _add_cell(row, cell + 1, border + right, dy - share, weight, cells, live, SIZE)


@triton.jit
def draw_kernel(
    points, edge_types, starts, which, maps, color, table, area, out, box, middle,
    SIZE: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr,
    EDGES: tl.constexpr, FLOAT: tl.constexpr,
):  # fmt: skip
    """Render one channel of one image per program.

    `area` and `out` are (B, CHANNELS, SIZE, SIZE). For float images they share memory: every tile is read
    as int32 sums before it is written as float32 pixels. WIDTH is SIZE rounded up to a power of two,
    which Triton needs, and ROWS image rows make a tile.
    """
    image = tl.program_id(0)
    channel = tl.program_id(1)
    # int64: large batches have more than 2^31 pixels.
    offset = (image.to(tl.int64) * CHANNELS + channel) * SIZE * SIZE
    cells = area + offset

    # 1. Clear the accumulator, tile by tile. The barrier keeps all threads out of step 2 until then.
    row_index = tl.arange(0, ROWS)[:, None]
    column_index = tl.arange(0, WIDTH)[None, :]
    for top in range(0, SIZE, ROWS):
        row = top + row_index
        at = cells + row * SIZE + column_index
        zero = tl.zeros((ROWS, WIDTH), tl.int32)
        tl.store(at, zero, mask=(row < SIZE) & (column_index < SIZE))
    tl.debug_barrier()

    # 2. Add the signed area of every edge, EDGES of them at a time. Vertex v and v + 1 bound edge v, so a
    # shape with n vertices has n - 1 edges; where a stroke ends, the edge type is 0.
    shape = tl.load(which + image)
    start = tl.load(starts + shape)
    end = tl.load(starts + shape + 1) - 1
    levels = table + (tl.load(color + image) * CHANNELS + channel) * 4
    # The map from box units to pixels: theta scaled by the box, its shift moved from [-1, 1] to [0, SIZE].
    m = maps + image * 6
    xx = tl.load(m) * box
    xy = tl.load(m + 1) * box
    x0 = (tl.load(m + 2) + 1.0) * middle
    yx = tl.load(m + 3) * box
    yy = tl.load(m + 4) * box
    y0 = (tl.load(m + 5) + 1.0) * middle
    for first in range(start, end, EDGES):
        edge = first + tl.arange(0, EDGES)
        live = edge < end
        edge_type = tl.load(edge_types + edge, mask=live, other=0)
        weight = -tl.load(levels + edge_type)
        # Skip the gaps between strokes, and edges between equal levels.
        live = live & (edge_type > 0) & (weight != 0)
        px = tl.load(points + 2 * edge, mask=live)
        py = tl.load(points + 2 * edge + 1, mask=live)
        qx = tl.load(points + 2 * edge + 2, mask=live)
        qy = tl.load(points + 2 * edge + 3, mask=live)
        # Snap both ends to the 1/1024 grid. A shared vertex snaps to one point, so outlines stay closed.
        xp = tl.floor((xx * px + xy * py + x0) * 1024.0 + 0.5).to(tl.int32)
        yp = tl.floor((yx * px + yy * py + y0) * 1024.0 + 0.5).to(tl.int32)
        xq = tl.floor((xx * qx + xy * qy + x0) * 1024.0 + 0.5).to(tl.int32)
        yq = tl.floor((yx * qx + yy * qy + y0) * 1024.0 + 0.5).to(tl.int32)
        # Orient every edge downwards, a to b; the sign of its weight keeps the direction.
        down = yp < yq
        weight = tl.where(down, weight, -weight)
        xa = tl.where(down, xp, xq)
        ya = tl.where(down, yp, yq)
        xb = tl.where(down, xq, xp)
        yb = tl.where(down, yq, yp)
        # Edges are shorter than a pixel, so they cross at most one row border: split there, without a loop.
        row = ya >> 10
        border = tl.minimum((row + 1) << 10, yb)
        dx_per_dy = (xb - xa).to(tl.float32) / tl.maximum(yb - ya, 1).to(tl.float32)
        between = xa + tl.floor((border - ya).to(tl.float32) * dx_per_dy + 0.5).to(tl.int32)
        between = tl.where(border == yb, xb, between)
        _add_row(row, xa, between, border - ya, weight, cells, live, SIZE)
        _add_row(row + 1, between, xb, yb - border, weight, cells, live, SIZE)
    tl.debug_barrier()

    # 3. Sum along the rows, starting from the background, round (+ 2^20) and clamp to a level.
    background = tl.load(levels)
    for top in range(0, SIZE, ROWS):
        row = top + row_index
        inside = (row < SIZE) & (column_index < SIZE)
        at = row * SIZE + column_index
        # Atomics update the L2 cache: .cg reads there, past an L1 that may hold the zeros of step 1.
        added = tl.load(cells + at, mask=inside, other=0, cache_modifier=".cg")
        total = tl.cumsum(added, axis=1) + (background << 21) + (1 << 20)
        level = tl.minimum(tl.maximum(total >> 21, 0), 255)
        if FLOAT:
            # div_rn rounds as the CPU does; a plain division may be off by one bit.
            tl.store(out + offset + at, tl.div_rn(level.to(tl.float32), 255.0), mask=inside)
        else:
            tl.store(out + offset + at, level.to(tl.uint8), mask=inside)
