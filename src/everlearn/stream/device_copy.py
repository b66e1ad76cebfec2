"""Copies from the host to a device that do not wait for the kernels queued there."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor


def copy_to_device(array: NDArray[Any], device: str) -> Tensor:
    """Return an array as a tensor on a device; on a CPU it shares the array's memory."""
    tensor = torch.from_numpy(array)
    # From pageable memory, the host would wait until the device has finished everything before.
    return tensor if device == "cpu" else tensor.pin_memory().to(device, non_blocking=True)
