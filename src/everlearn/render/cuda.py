"""Render on the GPU with Triton: the algorithm of render.cpu, one program per image and channel.

Edges are shorter than a pixel, so each crosses at most one row border and one column border, and its
four parts are added without a loop. The sums are integers: their order, which differs between runs on
a GPU, does not change the image.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from everlearn.render.canvas import Canvas
from everlearn.render.color_tables import edge_levels
from everlearn.render.edges import BOX_FRACTION, build_edges, detail_level
from everlearn.shapes import Outlines

_MAX_EDGE_PIXELS = 0.9
_TILE_PIXELS = 4096
_EDGES_PER_STEP = 128


@dataclass(frozen=True, eq=False)
class CudaRenderer:
    """Edge lists and colours on a GPU: all that images of one batch share."""

    map_dtype: ClassVar = torch.float32
    canvas: Canvas
    points: Tensor
    edge_types: Tensor
    starts: Tensor
    table: Tensor

    def draw(self, which: Tensor, maps: Tensor, color: Tensor, out: Tensor | None = None) -> Tensor:
        """Render outline which[b] under maps[b] (2, 3) without a device sync; return (B, C, H, W).

        Args:
            which: (B,) int32 indices of outlines.
            maps: (B, 2, 3) float32, as `theta` returns them.
            color: (B,) int32 indices into the canvas's colours.
            out: tensor to render into; a new one by default.
        """
        canvas = self.canvas
        device = self.points.device
        shape = (len(which), *canvas.shape)
        if out is None:
            out = torch.empty(shape, dtype=getattr(torch, canvas.dtype), device=device)
        floating = canvas.dtype == "float32"
        # Float images accumulate in their own memory, since int32 sums are as wide as float32 pixels.
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
                self.points, self.edge_types, self.starts, which, maps.reshape(-1, 6), color, self.table,
                area, out, BOX_FRACTION * canvas.size, canvas.size / 2,
                SIZE=canvas.size, WIDTH=width, ROWS=max(_TILE_PIXELS // width, 1), CHANNELS=canvas.channels,
                EDGES=_EDGES_PER_STEP, FLOAT=floating, num_warps=4,
            )  # fmt: skip
        return out


def cuda_renderer(
    outlines: Outlines, canvas: Canvas, device: str, max_scale: float = 1.0
) -> CudaRenderer:
    """Copy outlines to a GPU, with edges short enough for scales up to `max_scale`."""
    edges = build_edges(outlines, BOX_FRACTION * canvas.size * max_scale, _MAX_EDGE_PIXELS)
    arrays = (edges.points, edges.edge_types, edges.starts, edge_levels(canvas))
    return CudaRenderer(canvas, *(torch.from_numpy(array).to(device) for array in arrays))


def draw(
    outlines: Outlines, which: Any, maps: Any, color: Any, canvas: Canvas, device: str
) -> Tensor:
    """Render outline which[b] under maps[b] (2, 3) on a GPU; return (B, C, H, W)."""
    details = detail_level(maps)
    out = torch.empty(
        (len(which), *canvas.shape), dtype=getattr(torch, canvas.dtype), device=device
    )
    for detail in np.unique(details).tolist():
        rows = np.flatnonzero(details == detail)
        renderer = cuda_renderer(outlines, canvas, device, detail)
        out[torch.from_numpy(rows).to(device)] = renderer.draw(
            torch.as_tensor(which[rows], dtype=torch.int32, device=device),
            torch.as_tensor(maps[rows], dtype=torch.float32, device=device),
            torch.as_tensor(color[rows], dtype=torch.int32, device=device),
        )
    return out


@lru_cache(maxsize=1)
def _kernel() -> Any:
    """Import the kernel; triton is installed only where there is a GPU."""
    from everlearn.render.kernel import draw_kernel

    return draw_kernel
