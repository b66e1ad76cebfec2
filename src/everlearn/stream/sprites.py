"""Sprites as the pictures of a split: drawn when asked for, on the device that asks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from everlearn.philox import Floats
from everlearn.render import Pen, cpu_pen
from everlearn.render.canvas import Canvas
from everlearn.render.trace import detail
from everlearn.shapes import Outlines


@dataclass(frozen=True, eq=False)
class Sprites:
    """Row r shows outline which[r] under maps[r] in colour color[r]."""

    outlines: Outlines
    which: NDArray[np.int64]
    maps: Floats
    color: NDArray[np.int64]
    canvas: Canvas

    def drawer(self, device: str) -> Callable[[Tensor], Tensor]:
        """Return a function from rows on the device to images there."""
        if device == "cpu" or self.canvas.parity:
            ready = cpu_pen(self.outlines, self.canvas)
            return lambda rows: self._draw(ready, rows.cpu().numpy()).to(device)
        return self._gpu_drawer(device)

    def _draw(self, ready: Pen, rows: NDArray[np.int64]) -> Tensor:
        # A data-loader worker draws alone: its siblings use the other cores.
        threads = 1 if torch.utils.data.get_worker_info() else None
        drawn = ready.draw(self.which[rows], self.maps[rows], self.color[rows], threads)
        return torch.from_numpy(drawn)

    def _gpu_drawer(self, device: str) -> Callable[[Tensor], Tensor]:
        from everlearn.render.cuda import pen

        ready = pen(self.outlines, self.canvas, device, detail(self.maps).max(initial=1))
        which = torch.from_numpy(self.which.astype(np.int32)).to(device)
        maps = torch.from_numpy(self.maps.astype(np.float32)).to(device)
        color = torch.from_numpy(self.color.astype(np.int32)).to(device)
        return lambda rows: ready.draw(which[rows], maps[rows], color[rows])
