"""Items as the pictures of a split: each pasted on a black canvas, at a place of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from everlearn.stream.environments.items import Items, place
from everlearn.stream.shades import shader
from everlearn.stream.task import Ints


@dataclass(frozen=True, eq=False)
class Pasted:
    """Row r shows item which[r], as far from the left and the top as left[r] and top[r] say."""

    items: Items
    which: Ints
    left: Ints
    top: Ints
    inverse: bool

    def drawer(self, device: str) -> Callable[[Tensor], Tensor]:
        """Return a function from rows on the device to images there; the items lie there once."""
        size, empty = self.items.size, float(self.inverse)
        levels, shade = place(self.items, device), shader("float32", device)
        corners = torch.from_numpy(self.top * size + self.left).to(device)
        which = torch.from_numpy(self.which).to(device)
        inside = torch.from_numpy(_pixels(self.items)).to(device)

        def draw(rows: Tensor) -> Tensor:
            shown = levels[which[rows]]  # (B, side * side)
            images = torch.full((len(rows), size * size), empty, device=device)
            images.scatter_(1, corners[rows, None] + inside, shade(255 - shown if empty else shown))
            return images.view(-1, 1, size, size)

        return draw


def _pixels(items: Items) -> Ints:
    """The pixels of an item in the corner of a canvas, counted row by row, (side * side,)."""
    along = np.arange(items.side)
    return (along[:, None] * items.size + along).reshape(-1)
