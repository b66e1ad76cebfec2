"""Torch's random numbers, determined by a seed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from everlearn.core.random import Purpose, random_uint64


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch's default CPU generator inside, and restore it afterwards."""
    with torch.random.fork_rng(devices=[]):
        # torch.manual_seed would also seed every GPU.
        torch.default_generator.manual_seed(seed)
        yield


def fork_generator() -> torch.Generator:
    """Return a new generator, seeded by torch's default one, which advances by one number only.

    So what is drawn later does not depend on how many numbers the new generator draws.
    """
    return torch.Generator().manual_seed(int(torch.randint(2**62, ())))


def seeded_generator(
    seed: int, purpose: Purpose, index: int, device: str, substream: int = 0
) -> torch.Generator:
    """Return a generator determined by a seed, a purpose, an index (a task) and a substream."""
    number = int(random_uint64(seed, purpose, index, substream)[0]) >> 1  # torch takes 63 bits
    return torch.Generator(device).manual_seed(number)
