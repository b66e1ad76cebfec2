"""Draw on the GPU with Triton: the arithmetic of render.cpu, one program an image, nothing copied back.

Edges are at most a pixel long, so each passes at most one row border and one column border and its
four parts are added without a loop. The sums are integers: their order, which differs between runs on
a GPU, does not change the image.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from everlearn.render.canvas import Canvas
from everlearn.render.levels import level_table
from everlearn.render.trace import BOX, detail, trace
from everlearn.shapes import Outlines

_LONGEST = 0.9
_TILE = 4096
_EDGES = 128


@dataclass(frozen=True, eq=False)
class Pen:
    """Outlines and colours on a GPU, ready to draw: all that does not change from image to image."""

    canvas: Canvas
    points: Tensor
    kinds: Tensor
    starts: Tensor
    table: Tensor

    def draw(self, which: Tensor, maps: Tensor, color: Tensor, out: Tensor | None = None) -> Tensor:
        """Draw outline which[b] under maps[b] (2, 3); (B, C, H, W). Nothing waits for the GPU.

        Args:
            which: (B,) int32 rows of the outlines.
            maps: (B, 2, 3) float32, as `theta` gives them.
            color: (B,) int32 indices into the canvas's colours.
            out: where to draw, to use the same memory again.
        """
        canvas, device = self.canvas, self.points.device
        shape = (len(which), *canvas.shape)
        if out is None:
            out = torch.empty(shape, dtype=getattr(torch, canvas.dtype), device=device)
        floating = canvas.dtype == "float32"
        area = (
            out.view(torch.int32)
            if floating
            else torch.empty(shape, dtype=torch.int32, device=device)
        )
        if len(which) == 0:
            return out
        width = 1 << (canvas.size - 1).bit_length()
        with torch.cuda.device(device):
            _kernel()[(len(which), canvas.channels)](
                self.points, self.kinds, self.starts, which, maps.reshape(-1, 6), color, self.table,
                area, out, BOX * canvas.size, canvas.size / 2,
                SIZE=canvas.size, WIDTH=width, ROWS=max(_TILE // width, 1), CHANNELS=canvas.channels,
                EDGES=_EDGES, FLOAT=floating, num_warps=4,
            )  # fmt: skip
        return out


def pen(outlines: Outlines, canvas: Canvas, device: str, largest_scale: float = 1.0) -> Pen:
    """Send outlines to a GPU, cut for drawing at up to `largest_scale`."""
    strokes = trace(outlines, BOX * canvas.size * largest_scale, _LONGEST)
    arrays = (strokes.points, strokes.kinds, strokes.starts, level_table(canvas))
    return Pen(canvas, *(torch.from_numpy(array).to(device) for array in arrays))


def draw(
    outlines: Outlines, which: Any, maps: Any, color: Any, canvas: Canvas, device: str
) -> Tensor:
    """Draw outline which[b] under maps[b] (2, 3) on a GPU; (B, C, H, W)."""
    fineness = detail(maps)
    out = torch.empty(
        (len(which), *canvas.shape), dtype=getattr(torch, canvas.dtype), device=device
    )
    for scale in np.unique(fineness).tolist():
        rows = np.flatnonzero(fineness == scale)
        out[torch.from_numpy(rows).to(device)] = pen(outlines, canvas, device, scale).draw(
            torch.as_tensor(which[rows], dtype=torch.int32, device=device),
            torch.as_tensor(maps[rows], dtype=torch.float32, device=device),
            torch.as_tensor(color[rows], dtype=torch.int32, device=device),
        )
    return out


@lru_cache(maxsize=1)
def _kernel() -> Any:
    """Load the kernel; triton exists only where there is a GPU."""
    from everlearn.render.kernel import draw_kernel

    return draw_kernel
