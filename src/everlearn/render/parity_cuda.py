"""Render like the original package on the GPU with Triton, equal to render.parity in every pixel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import torch
from torch import Tensor

from everlearn.render.canvas import Canvas
from everlearn.render.color_tables import hard_edge_values
from everlearn.render.edges import BOX_FRACTION
from everlearn.shapes import Outlines

_TILE_PIXELS = 2048
_EDGES_PER_STEP = 256


@dataclass(frozen=True, eq=False)
class ParityCudaRenderer:
    """Polygons and colours on a GPU: all that images of one batch share.

    Attributes:
        points: (S, P, 2) float64 vertices in box units.
        frame: (2,) float64, the side of the box and half the side of the image, in pixels.
        values: (K, C, 3) pixel values of background, shape and mark.
    """

    map_dtype: ClassVar = torch.float64
    canvas: Canvas
    points: Tensor
    frame: Tensor
    values: Tensor

    def draw(self, which: Tensor, maps: Tensor, color: Tensor, out: Tensor | None = None) -> Tensor:
        """Render outline which[b] under maps[b] (2, 3) without a device sync; return (B, C, H, W).

        Args:
            which: (B,) int32 indices of outlines.
            maps: (B, 2, 3) float64, as `theta` returns them.
            color: (B,) int32 indices into the canvas's colours.
            out: tensor to render into; a new one by default.
        """
        canvas = self.canvas
        size = canvas.size
        device = self.points.device
        if out is None:
            out = torch.empty((len(which), *canvas.shape), dtype=self.values.dtype, device=device)
        if len(which) == 0:
            return out
        words = (size + 31) // 32
        masks = torch.empty((len(which), 2, size, words), dtype=torch.int32, device=device)
        width = 1 << (words - 1).bit_length()
        with torch.cuda.device(device):
            _kernel()[(len(which),)](
                self.points, which, maps.reshape(-1, 6), color, self.frame, self.values, masks, out,
                POINTS=self.points.shape[1], SIZE=size, WORDS=words, WIDTH=width,
                ROWS=max(_TILE_PIXELS // (32 * width), 1), CHANNELS=canvas.channels,
                EDGES=_EDGES_PER_STEP, num_warps=4, enable_fp_fusion=False,
            )  # fmt: skip
        return out


def parity_cuda_renderer(outlines: Outlines, canvas: Canvas, device: str) -> ParityCudaRenderer:
    """Copy the polygons of outlines to a GPU."""
    frame = torch.tensor([BOX_FRACTION * canvas.size, canvas.size / 2], dtype=torch.float64)
    points = torch.from_numpy(outlines.points)
    values = torch.from_numpy(hard_edge_values(canvas))
    return ParityCudaRenderer(
        canvas, points.to(device), frame.to(device), values.contiguous().to(device)
    )


def draw(
    outlines: Outlines, which: Any, maps: Any, color: Any, canvas: Canvas, device: str
) -> Tensor:
    """Render outline which[b] under maps[b] (2, 3) on a GPU; return (B, C, H, W)."""
    return parity_cuda_renderer(outlines, canvas, device).draw(
        torch.as_tensor(which, dtype=torch.int32, device=device),
        torch.as_tensor(maps, dtype=torch.float64, device=device),
        torch.as_tensor(color, dtype=torch.int32, device=device),
    )


@lru_cache(maxsize=1)
def _kernel() -> Any:
    """Import the kernel; triton is installed only where there is a GPU."""
    from everlearn.render.parity_kernel import draw_kernel

    return draw_kernel
