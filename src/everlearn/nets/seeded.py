"""Random weights and numbers that follow from a seed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from everlearn.philox import Purpose, words


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Let torch draw from a seed inside; afterwards its own generator is as it was."""
    with torch.random.fork_rng(devices=[]):
        # torch.manual_seed would seed GPUs, too.
        torch.default_generator.manual_seed(seed)
        yield


def chance(seed: int, purpose: Purpose, index: int, device: str, lane: int = 0) -> torch.Generator:
    """A generator on a device that follows from a seed, a purpose, an index (a task) and a lane."""
    number = int(words(seed, purpose, index, lane)[0]) >> 1  # torch takes 63 bits
    return torch.Generator(device).manual_seed(number)
