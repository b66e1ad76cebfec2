"""What learning cost, and whether it diverged."""

from __future__ import annotations

import gc
import math
import resource
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from everlearn.learner import Learner, ReportsDiagnostics

_STATM = Path("/proc/self/statm")
_CLEAR_REFS = Path("/proc/self/clear_refs")


class DivergedError(ArithmeticError):
    """The loss or a weight is infinite or not a number."""


def check_losses(losses: Sequence[float | Tensor], task: int, step: int) -> float | None:
    """Return the mean loss of a task, None without steps; raise where a loss is not finite.

    Args:
        step: the last step of the task, counted from the start of the stream.
    """
    if not losses:
        return None
    values = torch.stack([torch.as_tensor(loss, dtype=torch.float32) for loss in losses]).cpu()
    wrong = (~values.isfinite()).nonzero()
    if len(wrong):
        place = int(wrong[0])
        raise DivergedError(
            f"the loss became {values[place]} at step {step - len(losses) + place + 1}, step {place + 1} "
            f"of task {task}; earlier checkpoints are kept: start again with a lower learning rate"
        )
    return float(values.double().mean())


def check_weights(state: Mapping[str, Any], task: int) -> None:
    """Raise where a learner's state is not finite: it must not replace a good checkpoint."""
    for name, part in state.items():
        if not all(bool(tensor.isfinite().all()) for tensor in tensors(part)):
            raise DivergedError(
                f"the learner's {name} became infinite or not a number in task {task}; earlier "
                "checkpoints are kept: start again with a lower learning rate"
            )


class Memory(NamedTuple):
    """Bytes in use: by the process, on the device, and on the device at most so far."""

    host: int
    device: int
    peak: int


def reset_peak_memory(device: str) -> None:
    """Measure peak memory from now on: what this process did before does not count for a run."""
    gc.collect()
    if device != "cpu":
        torch.cuda.reset_peak_memory_stats(device)
    elif _CLEAR_REFS.exists():
        with suppress(OSError):  # some containers forbid it
            _CLEAR_REFS.write_text("5")


def measure_memory(device: str) -> Memory:
    """Measure the memory in use; a CPU's is that of the process."""
    pages = int(_STATM.read_text().split()[1]) if _STATM.exists() else 0
    host = pages * resource.getpagesize()
    if device != "cpu":
        allocated = torch.cuda.memory_allocated(device)
        return Memory(host, allocated, torch.cuda.max_memory_allocated(device))
    unit = 1 if sys.platform == "darwin" else 1024
    return Memory(host, host, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)


def read_diagnostics(learner: Learner) -> dict[str, float | None] | None:
    """Read a learner's diagnostics from the device at once; None for those that are not finite."""
    if not isinstance(learner, ReportsDiagnostics):
        return None
    diagnostics = learner.diagnostics()
    numbers = [
        torch.as_tensor(number, dtype=torch.float64, device=learner.device).reshape(())
        for number in diagnostics.values()
    ]
    values = torch.stack(numbers).tolist() if numbers else []
    pairs = zip(diagnostics, values, strict=True)
    return {name: value if math.isfinite(value) else None for name, value in pairs}


def count_bytes(state: object) -> int:
    """Count the bytes of all tensors in a state."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors(state))


def count_numbers(state: object) -> int:
    """Count the numbers in all tensors of a state."""
    return sum(tensor.numel() for tensor in tensors(state))


def tensors(state: object) -> list[Tensor]:
    """List all tensors in nested dicts and lists, in order."""
    if isinstance(state, Tensor):
        return [state]
    parts = list(state.values()) if isinstance(state, dict) else state
    if not isinstance(parts, (list, tuple)):
        return []
    return [tensor for part in parts for tensor in tensors(part)]
