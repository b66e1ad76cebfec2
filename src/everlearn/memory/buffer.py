"""A buffer: some images with their units and perhaps logits, in memory that is allocated once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from everlearn.philox import Purpose, uniform

Ints = NDArray[np.int64]
_LEVELS = 255.0


class Buffer:
    """Room for `capacity` images on a device. Images of whole levels are kept as uint8, without loss.

    One more row than fits is allocated: what is written to row `capacity` is thrown away. So a training
    step can write each of its images, kept or not, without asking which.

    Args:
        shape: of an image, (channels, height, width).
        bits: 8 for images whose numbers are whole / 255, 32 for any others.
        logits: how many logits are kept beside each image.
    """

    def __init__(
        self, capacity: int, shape: Sequence[int], bits: int, device: str, logits: int = 0
    ) -> None:
        """Hold nothing yet."""
        self.capacity, self.filled, self._device = capacity, 0, device
        kind = torch.uint8 if bits == 8 else torch.float32
        self._images = torch.zeros((capacity + 1, *shape), dtype=kind, device=device)
        self._units = torch.zeros(capacity + 1, dtype=torch.int64, device=device)
        self._logits = torch.zeros((capacity + 1, logits), device=device)
        # A tensor: a GPU multiplies by 1 / 255 instead of dividing by a plain number, a bit off.
        self._levels = torch.tensor(_LEVELS, device=device)

    @property
    def tensors(self) -> list[Tensor]:
        """All that a training step which writes may change."""
        return [self._images, self._units, self._logits]

    def put(self, slots: Ints, images: Tensor, units: Tensor) -> None:
        """Keep images and units in slots, all of them different."""
        self.write(torch.from_numpy(slots).to(self._device), images, units)
        self.filled = max(self.filled, int(slots.max(initial=-1)) + 1)

    def write(self, rows: Tensor, images: Tensor, units: Tensor) -> None:
        """Put images (B, C, H, W) and units (B,) into rows (B,), all of them different."""
        whole = self._images.dtype == torch.uint8
        self._images[rows] = (images * _LEVELS).round().to(torch.uint8) if whole else images
        self._units[rows] = units

    def write_logits(self, rows: Tensor, logits: Tensor) -> None:
        """Put logits (B, classes) beside the images of rows (B,)."""
        self._logits[rows] = logits.detach().float()

    def images(self, rows: Tensor) -> Tensor:
        """The images of rows as they came, float32."""
        found = self._images[rows]
        return found.float() / self._levels if found.dtype == torch.uint8 else found

    def units(self, rows: Tensor) -> Tensor:
        """The units of rows."""
        return self._units[rows]

    def logits(self, rows: Tensor) -> Tensor:
        """The logits of rows."""
        return self._logits[rows]

    def join(self, images: Tensor, units: Tensor, *recalled: Tensor) -> tuple[Tensor, Tensor]:
        """New images and units, and behind them those of rows, if any."""
        for rows in recalled:
            images = torch.cat([images, self.images(rows)])
            units = torch.cat([units, self.units(rows)])
        return images, units

    def state(self) -> dict[str, Any]:
        """What is held."""
        held = slice(0, self.filled)
        return {
            "images": self._images[held],
            "units": self._units[held],
            "logits": self._logits[held],
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Hold what a state holds."""
        self.filled = len(state["units"])
        for there, kept in (
            (self._images, state["images"]),
            (self._units, state["units"]),
            (self._logits, state["logits"]),
        ):
            there[: self.filled] = kept.to(there.device)


def draw_rows(
    seed: int, task: int, filled: int | Ints, steps: int, count: int, lane: int = 0
) -> Ints:
    """What to recall in each step of a task, uniformly with repeats: (steps, count) in 0 .. filled - 1.

    Where nothing is filled, there is nothing to recall: (0, count).

    Args:
        filled: how many there are to choose from, at every step or at each one (steps,).
        lane: below 256, tells draws of one task apart.
    """
    if not np.any(filled):
        return np.zeros((0, count), np.int64)
    address = (lane << 24) | np.arange(steps)
    chance = uniform(seed, Purpose.RECALL, task, address, count=count)
    most = np.broadcast_to(np.asarray(filled, np.int64), (steps,))[:, None]
    drawn: Ints = (chance * most).astype(np.int64)
    return drawn
