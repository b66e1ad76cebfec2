"""Images of sprites, rendered on request on the device that needs them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from everlearn.core.random import Floats
from everlearn.render import Renderer, cpu_renderer
from everlearn.render.canvas import Canvas
from everlearn.render.edges import detail_level
from everlearn.shapes import Outlines

if TYPE_CHECKING:
    from everlearn.render.cuda import CudaRenderer
    from everlearn.render.parity_cuda import ParityCudaRenderer


@dataclass(frozen=True, eq=False)
class SpriteImages:
    """Row r shows outline which[r] under the affine map maps[r] (2, 3) in colour color[r]."""

    outlines: Outlines
    which: NDArray[np.int64]
    maps: Floats
    color: NDArray[np.int64]
    canvas: Canvas

    def loader(self, device: str) -> Callable[[Tensor], Tensor]:
        """Return a function from row numbers to images, both on the device."""
        if device == "cpu":
            renderer = cpu_renderer(self.outlines, self.canvas)
            return lambda rows: self._draw(renderer, rows.numpy())
        return self._gpu_loader(device)

    def _draw(self, renderer: Renderer, rows: NDArray[np.int64]) -> Tensor:
        # A data-loader worker renders in one thread: its siblings use the other cores.
        threads = 1 if torch.utils.data.get_worker_info() else None
        images = renderer.draw(self.which[rows], self.maps[rows], self.color[rows], threads)
        return torch.from_numpy(images)

    def _gpu_loader(self, device: str) -> Callable[[Tensor], Tensor]:
        renderer = self._gpu_renderer(device)
        which = torch.from_numpy(self.which.astype(np.int32)).to(device)
        maps = torch.tensor(self.maps, dtype=renderer.map_dtype, device=device)
        color = torch.from_numpy(self.color.astype(np.int32)).to(device)
        return lambda rows: renderer.draw(which[rows], maps[rows], color[rows])

    def _gpu_renderer(self, device: str) -> CudaRenderer | ParityCudaRenderer:
        if self.canvas.parity:
            from everlearn.render.parity_cuda import parity_cuda_renderer

            return parity_cuda_renderer(self.outlines, self.canvas, device)
        from everlearn.render.cuda import cuda_renderer

        detail = detail_level(self.maps).max(initial=1)
        return cuda_renderer(self.outlines, self.canvas, device, detail)
