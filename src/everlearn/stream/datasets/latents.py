"""Latents as images: stored as float16 on each device, returned as float32."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from everlearn.stream.datasets.files import Ints


@dataclass(frozen=True, eq=False)
class LatentTable:
    """All latents of a file, (N, C, H, W); one copy per device serves every task of every stream."""

    latents: NDArray[np.float16]
    _on_device: dict[str, Tensor] = field(default_factory=dict, repr=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """N, C, H and W."""
        return self.latents.shape

    def __getitem__(self, rows: Ints) -> NDArray[np.float16]:
        """Return some rows."""
        return self.latents[rows]

    def to(self, device: str) -> Tensor:
        """Return the table on a device; the CPU shares the memory of the array."""
        if device not in self._on_device:
            self._on_device[device] = torch.from_numpy(self.latents).to(device)
        return self._on_device[device]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the copies on devices, so that a table can be sent to another process."""
        return {**self.__dict__, "_on_device": {}}


@dataclass(frozen=True, eq=False)
class LatentRows:
    """Row r is the latent rows[r] of a table."""

    table: LatentTable
    rows: Ints

    def loader(self, device: str) -> Callable[[Tensor], Tensor]:
        """Return a function from row numbers to float32 latents, both on the device."""
        table = self.table.to(device)
        table_rows = torch.from_numpy(self.rows).to(device)
        return lambda rows: table[table_rows[rows]].float()
