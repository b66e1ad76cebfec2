"""Latents as the pictures of a split: kept as float16 on a device, given as float32."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from everlearn.stream.arrays.files import Ints


@dataclass(frozen=True, eq=False)
class LatentTable:
    """All latents of a file, (N, C, H, W); put on a device once, for every task of every stream."""

    latents: NDArray[np.float16]
    _places: dict[str, Tensor] = field(default_factory=dict, repr=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """N, C, H and W."""
        return self.latents.shape

    def __getitem__(self, rows: Ints) -> NDArray[np.float16]:
        """Give some rows."""
        return self.latents[rows]

    def on(self, device: str) -> Tensor:
        """The table on a device; nothing is copied on the CPU."""
        if device not in self._places:
            self._places[device] = torch.from_numpy(self.latents).to(device)
        return self._places[device]

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind what lies on devices, so that a table can be sent to another process."""
        return {**self.__dict__, "_places": {}}


@dataclass(frozen=True, eq=False)
class LatentRows:
    """Row r shows the latent rows[r] of a table, as it is."""

    table: LatentTable
    rows: Ints

    def drawer(self, device: str) -> Callable[[Tensor], Tensor]:
        """Return a function from rows on the device to latents there, float32."""
        table, own = self.table.on(device), torch.from_numpy(self.rows).to(device)
        return lambda rows: table[own[rows]].float()
