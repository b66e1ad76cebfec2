"""Convert 8-bit levels to images, with the same bits on every device."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from everlearn.render.color_tables import pixel_values


def level_decoder(dtype: str, device: str) -> Callable[[Tensor], Tensor]:
    """Return a function from levels on a device to images of a dtype.

    Floats come from a lookup table: a GPU's division by 255 is not exact to the last bit.
    """
    if dtype == "uint8":
        return lambda levels: levels
    table = torch.from_numpy(pixel_values(dtype)).to(device)
    return lambda levels: table[levels.long()]
