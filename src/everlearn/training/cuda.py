"""Context managers around CUDA work: captures that nothing disturbs, and transfers beside kernels."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Disable garbage collection inside: freeing a graph while another is captured breaks the capture."""
    gc.collect()
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def transfer_stream(device: str) -> AbstractContextManager[Any]:
    """Run transfers inside on a stream of their own, so that they do not wait for running kernels."""
    if device == "cpu":
        return nullcontext()
    stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    return torch.cuda.stream(stream)
