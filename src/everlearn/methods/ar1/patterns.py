"""What is replayed in an experience: latents that were kept, generated or drawn at random."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from everlearn.nets.seeded import chance
from everlearn.philox import Purpose, uniform

Ints = NDArray[np.int64]
_HIGH = 0.9  # of all activations lie below the largest random one
_MOST = 2**20


class Patterns:
    """Room for latents and their units that are made anew for every experience.

    Attributes:
        latents: (capacity, C, H, W), always in the same memory.
        units: (capacity,).
        labels: the same on the host.
        filled: how many there are.
    """

    def __init__(self, capacity: int, shape: Sequence[int], device: str) -> None:
        """Hold nothing yet."""
        self.latents = torch.zeros((capacity, *shape), device=device)
        self.units = torch.zeros(capacity, dtype=torch.int64, device=device)
        self.labels: Ints = np.zeros(0, np.int64)
        self.filled = 0

    def fill(self, latents: Tensor, labels: Ints) -> None:
        """Hold these instead."""
        self.filled, self.labels = len(labels), labels
        self.latents[: len(labels)] = latents
        self.units[: len(labels)] = torch.from_numpy(labels).to(self.units.device)


def draw_labels(seed: int, task: int, known: Sequence[int], count: int) -> Ints:
    """Classes to replay, each of those known as likely as any other (count,)."""
    if not len(known):
        return np.zeros(0, np.int64)
    drawn = uniform(seed, Purpose.REPLAY, task, count=count)
    return np.asarray(known, np.int64)[(drawn * len(known)).astype(np.int64)]


def draw_random(seed: int, task: int, count: int, shape: Sequence[int], bound: Tensor) -> Tensor:
    """Latents whose numbers are uniform between 0 and a bound (), on its device."""
    device = str(bound.device)
    source = chance(seed, Purpose.REPLAY, task, device, lane=1)
    return bound * torch.rand((count, *shape), generator=source, device=device)


def find_bound(latents: Tensor) -> Tensor:
    """The 90th percentile of all numbers of latents, ()."""
    flat = latents.reshape(-1)
    some = flat[:: max(1, len(flat) // _MOST)]
    return some.kthvalue(max(1, int(_HIGH * len(some)))).values
