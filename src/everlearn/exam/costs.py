"""What learning cost, and whether it went wrong."""

from __future__ import annotations

import gc
import math
import resource
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from everlearn.learner import Learner, Tells

_STATM = Path("/proc/self/statm")
_CLEAR = Path("/proc/self/clear_refs")


class DivergedError(ArithmeticError):
    """The loss is no number any more."""


def check_losses(losses: Sequence[float | Tensor], task: int, step: int) -> float | None:
    """Return the mean loss of a task, None without steps, or say where it stopped being a number.

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
            f"the loss became {values[place]} at step {step - len(losses) + place + 1}, the {place + 1}. "
            f"of task {task}; checkpoints from before are kept: try a lower rate, from the start"
        )
    return float(values.double().mean())


def check_weights(state: dict[str, Any], task: int) -> None:
    """Raise where a learner's state holds what is no number: it must not replace a good checkpoint."""
    for name, part in state.items():
        if not all(bool(tensor.isfinite().all()) for tensor in tensors(part)):
            raise DivergedError(
                f"the learner's {name} became infinite or no number in task {task}; checkpoints from "
                "before are kept: try a lower rate, from the start"
            )


def gpu_of(device: str) -> str | None:
    """The name of a device that is a GPU."""
    return None if device == "cpu" else torch.cuda.get_device_name(device)


def settled(device: str) -> float:
    """Wait until a GPU has done what it was told; then tell the time, in seconds."""
    if device != "cpu":
        torch.cuda.synchronize(device)
    return perf_counter()


def forget_peak(device: str) -> None:
    """Count peak memory from now on: what ran in this process before is none of a run's cost."""
    gc.collect()
    if device != "cpu":
        torch.cuda.reset_peak_memory_stats(device)
    elif _CLEAR.exists():
        with suppress(OSError):  # some containers forbid it
            _CLEAR.write_text("5")


def count_costs(learner: Learner, full: bool) -> dict[str, Any]:
    """Memory in use now and at most, and what a learner tells of itself.

    In full, also the bytes a learner keeps, by what they are.
    """
    costs = count_memory(learner.device)
    if isinstance(learner, Tells):
        costs["notes"] = read_notes(learner.notes(), learner.device)
    if full:
        state = learner.state()
        costs["bytes"] = {name: count_bytes(part) for name, part in state.items()}
        costs["parameters"] = count_numbers(state.get("net", {}))
    return costs


def read_notes(notes: dict[str, float | Tensor], device: str) -> dict[str, float | None]:
    """The notes of a learner, read at once; None stands for what is no finite number."""
    told = [torch.as_tensor(note, dtype=torch.float64, device=device) for note in notes.values()]
    values = torch.stack([note.reshape(()) for note in told]).tolist() if told else []
    pairs = zip(notes, values, strict=True)
    return {name: value if math.isfinite(value) else None for name, value in pairs}


def count_memory(device: str) -> dict[str, Any]:
    """Bytes in use: of the process, and where it computes now and at most so far."""
    pages = int(_STATM.read_text().split()[1]) if _STATM.exists() else 0
    used = {"host_memory": pages * resource.getpagesize()}
    if device != "cpu":
        now, most = torch.cuda.memory_allocated(device), torch.cuda.max_memory_allocated(device)
        return used | {"memory": now, "peak_memory": most}
    unit = 1 if sys.platform == "darwin" else 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return used | {"memory": used["host_memory"], "peak_memory": most}


def count_bytes(state: Any) -> int:
    """Bytes of all tensors in a state."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors(state))


def count_numbers(state: Any) -> int:
    """How many numbers all tensors of a state hold."""
    return sum(tensor.numel() for tensor in tensors(state))


def tensors(state: Any) -> list[Tensor]:
    """All tensors of nested dicts and lists, in order."""
    if isinstance(state, Tensor):
        return [state]
    if isinstance(state, dict):
        state = list(state.values())
    return (
        [found for part in state for found in tensors(part)]
        if isinstance(state, (list, tuple))
        else []
    )
