"""A replay buffer of images with targets and optional logits, allocated once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from everlearn.core.random import Purpose, uniform

Ints = NDArray[np.int64]
_LEVELS = 255.0
_PARTS = ("images", "targets", "logits")


class Buffer:
    """Up to `capacity` images on a device. Images with 8-bit levels are stored as uint8, without loss.

    One extra row is allocated, and what is written to row `capacity` is discarded. So a training step
    can write all its images, stored or not, without a data-dependent branch.

    Args:
        shape: (channels, height, width) of an image.
        bits: 8 for images with pixels n / 255, 32 for any others.
        logits: number of logits stored with each image.
    """

    def __init__(
        self, capacity: int, shape: Sequence[int], bits: int, device: str, logits: int = 0
    ) -> None:
        """Start empty."""
        self.capacity = capacity
        self.filled = 0
        self._device = device
        dtype = torch.uint8 if bits == 8 else torch.float32
        self._images = torch.zeros((capacity + 1, *shape), dtype=dtype, device=device)
        self._targets = torch.zeros(capacity + 1, dtype=torch.int64, device=device)
        self._logits = torch.zeros((capacity + 1, logits), device=device)
        # A tensor: a GPU turns division by a Python number into a product with 1 / 255, one bit off.
        self._levels = torch.tensor(_LEVELS, device=device)

    @property
    def tensors(self) -> list[Tensor]:
        """Tensors that a training step with `write` changes."""
        return [self._images, self._targets, self._logits]

    def put(self, slots: Ints, images: Tensor, targets: Tensor) -> None:
        """Store images and targets in distinct slots."""
        self.write(torch.from_numpy(slots).to(self._device), images, targets)
        self.filled = max(self.filled, int(slots.max(initial=-1)) + 1)

    def write(self, rows: Tensor, images: Tensor, targets: Tensor) -> None:
        """Write images (B, C, H, W) and targets (B,) to distinct rows (B,), without a device sync."""
        quantized = self._images.dtype == torch.uint8
        self._images[rows] = (images * _LEVELS).round().to(torch.uint8) if quantized else images
        self._targets[rows] = targets

    def write_logits(self, rows: Tensor, logits: Tensor) -> None:
        """Write logits (B, classes) of the images in rows (B,)."""
        self._logits[rows] = logits.detach().float()

    def images(self, rows: Tensor) -> Tensor:
        """Return the images of rows as float32, equal to those that were written."""
        stored = self._images[rows]
        return stored.float() / self._levels if stored.dtype == torch.uint8 else stored

    def targets(self, rows: Tensor) -> Tensor:
        """Return the targets of rows."""
        return self._targets[rows]

    def logits(self, rows: Tensor) -> Tensor:
        """Return the logits of rows."""
        return self._logits[rows]

    def join(self, images: Tensor, targets: Tensor, *replayed: Tensor) -> tuple[Tensor, Tensor]:
        """Append the images and targets of the `replayed` rows, if any, to a batch."""
        for rows in replayed:
            images = torch.cat([images, self.images(rows)])
            targets = torch.cat([targets, self.targets(rows)])
        return images, targets

    def state(self) -> dict[str, Any]:
        """Return the stored images, targets and logits."""
        return {
            name: tensor[: self.filled] for name, tensor in zip(_PARTS, self.tensors, strict=True)
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Load a state into the allocated tensors."""
        self.filled = len(state["targets"])
        for name, tensor in zip(_PARTS, self.tensors, strict=True):
            tensor[: self.filled] = state[name].to(tensor.device)


def draw_replay_rows(
    seed: int, task: int, filled: int | Ints, steps: int, count: int, substream: int = 0
) -> Ints:
    """Draw the rows that each step of a task replays: (steps, count), uniform in 0 .. filled - 1.

    Rows are drawn with replacement. An empty buffer gives an array of shape (0, count).

    Args:
        filled: number of rows to draw from, for all steps or for each step (steps,).
        substream: below 256, distinguishes independent draws of one task.
    """
    if not np.any(filled):
        return np.zeros((0, count), np.int64)
    address = (substream << 24) | np.arange(steps)
    u = uniform(seed, Purpose.RECALL, task, address, count=count)
    limit = np.broadcast_to(np.asarray(filled, np.int64), (steps,))[:, None]
    return (u * limit).astype(np.int64)
