"""Images of items, each pasted on a black canvas at its offset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from everlearn.stream.environments.items import Items, levels_on
from everlearn.stream.levels import level_decoder
from everlearn.stream.task import Ints


@dataclass(frozen=True, eq=False)
class PastedImages:
    """Row r shows item which[r], left[r] and top[r] pixels from the left and top of the canvas."""

    items: Items
    which: Ints
    left: Ints
    top: Ints
    inverse: bool

    def loader(self, device: str) -> Callable[[Tensor], Tensor]:
        """Return a function from row numbers to images, both on the device."""
        size = self.items.size
        background = float(self.inverse)
        levels = levels_on(self.items, device)
        decode = level_decoder("float32", device)
        corners = torch.from_numpy(self.top * size + self.left).to(device)
        which = torch.from_numpy(self.which).to(device)
        pixels = torch.from_numpy(_pixels(self.items)).to(device)

        def draw(rows: Tensor) -> Tensor:
            shown = levels[which[rows]]  # (B, side * side)
            values = decode(255 - shown if self.inverse else shown)
            images = torch.full((len(rows), size * size), background, device=device)
            images.scatter_(1, corners[rows, None] + pixels, values)
            return images.view(-1, 1, size, size)

        return draw


def _pixels(items: Items) -> Ints:
    """Return the pixel numbers, row by row, of an item in the top left corner, (side * side,)."""
    along = np.arange(items.side)
    return (along[:, None] * items.size + along).reshape(-1)
