"""From stored 8-bit levels to the images of a batch, with the same bits on every device."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from everlearn.render.levels import lookup_table


def shader(dtype: str, device: str) -> Callable[[Tensor], Tensor]:
    """Return a function from levels on a device to images of a type.

    Floats are looked up: a GPU's division by 255 is not exact to the last bit.
    """
    if dtype == "uint8":
        return lambda levels: levels
    shades = torch.from_numpy(lookup_table(dtype)).to(device)
    return lambda levels: shades[levels.long()]
