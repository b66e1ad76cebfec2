"""CUDA streams beside the current one, for kernels that may run at the same time."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

WEIGHT_GRADIENTS = "weight gradients"
SHORTCUTS = "shortcuts"


class SideStream:
    """A CUDA stream that forks from the current one and joins it again, also while a graph is captured."""

    def __init__(self, device: torch.device) -> None:
        """Make the stream."""
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        # The allocator may reuse a freed tensor at once on its own stream, whatever another stream reads.
        self._read: list[Tensor] = []

    def fork(self, *read: Tensor) -> Any:
        """Run kernels inside on this stream, after those queued so far; they read these tensors."""
        self._read.extend(read)
        self._stream.wait_stream(torch.cuda.current_stream(self._stream.device))
        return torch.cuda.stream(self._stream)

    def join(self) -> None:
        """Let the current stream wait for all kernels of this one, if there are any since the last join."""
        # A graph that is being captured may only wait for a stream that forked from it.
        if self._read:
            torch.cuda.current_stream(self._stream.device).wait_stream(self._stream)
            self._read.clear()


@lru_cache(maxsize=64)
def side_stream(device: torch.device, purpose: str) -> SideStream:
    """Return the stream of a device for one purpose."""
    return SideStream(device)
