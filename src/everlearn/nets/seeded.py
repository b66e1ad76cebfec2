"""Random weights that follow from a seed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Let torch draw from a seed inside; afterwards its own generator is as it was."""
    with torch.random.fork_rng(devices=[]):
        # torch.manual_seed would seed GPUs, too.
        torch.default_generator.manual_seed(seed)
        yield
