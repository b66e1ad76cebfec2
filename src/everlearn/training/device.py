"""The device that a learner computes on."""

from __future__ import annotations

from time import perf_counter

import torch

from everlearn.render import check_device


def find_device(device: str) -> str:
    """Check the name of a device; "auto" is a GPU where there is one."""
    if device != "auto":
        return check_device(device)
    return "cuda" if torch.cuda.is_available() else "cpu"


def gpu_name(device: str) -> str | None:
    """Return the model name of a GPU, or None for a CPU."""
    return None if device == "cpu" else torch.cuda.get_device_name(device)


def synchronized_time(device: str) -> float:
    """Wait for a GPU to finish its work; then return the time in seconds."""
    if device != "cpu":
        torch.cuda.synchronize(device)
    return perf_counter()
