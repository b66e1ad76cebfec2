"""Latents that are replayed in an experience, generated or drawn at random."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from everlearn.core.random import Purpose, uniform
from everlearn.nets.seeded import seeded_generator

Ints = NDArray[np.int64]
_QUANTILE = 0.9  # of activations lie below the largest random one
_MAX_NUMBERS = 2**20


class Patterns:
    """A buffer of latents with their targets, refilled for every experience.

    Attributes:
        latents: (capacity, C, H, W), always the same memory.
        targets: (capacity,).
        labels: the targets on the host.
        filled: number of patterns held.
    """

    def __init__(self, capacity: int, shape: Sequence[int], device: str) -> None:
        """Start empty."""
        self.latents = torch.zeros((capacity, *shape), device=device)
        self.targets = torch.zeros(capacity, dtype=torch.int64, device=device)
        self.labels: Ints = np.zeros(0, np.int64)
        self.filled = 0

    def fill(self, latents: Tensor, labels: Ints) -> None:
        """Replace all patterns."""
        self.filled = len(labels)
        self.labels = labels
        self.latents[: len(labels)] = latents
        self.targets[: len(labels)] = torch.from_numpy(labels).to(self.targets.device)


def draw_labels(seed: int, task: int, known: Sequence[int], count: int) -> Ints:
    """Draw classes to replay, uniformly from the known ones, (count,)."""
    if not len(known):
        return np.zeros(0, np.int64)
    drawn = uniform(seed, Purpose.REPLAY, task, count=count)
    return np.asarray(known, np.int64)[(drawn * len(known)).astype(np.int64)]


def draw_random(seed: int, task: int, count: int, shape: Sequence[int], bound: Tensor) -> Tensor:
    """Draw latents that are uniform between 0 and a bound (), on its device."""
    device = str(bound.device)
    generator = seeded_generator(seed, Purpose.REPLAY, task, device, substream=1)
    return bound * torch.rand((count, *shape), generator=generator, device=device)


def find_bound(latents: Tensor) -> Tensor:
    """Return the 90th percentile of all numbers of latents, ()."""
    flat = latents.reshape(-1)
    sample = flat[:: max(1, len(flat) // _MAX_NUMBERS)]
    return sample.kthvalue(max(1, int(_QUANTILE * len(sample)))).values
