"""Two captured steps for a training step with a flag: a CUDA graph cannot branch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from torch import Tensor

from everlearn.training.captured_step import CapturedStep


def step_pair(
    step: Callable[..., Tensor], state: Iterable[Tensor]
) -> tuple[CapturedStep, CapturedStep]:
    """Capture a step with False and with True as its first argument: a graph cannot branch."""
    tensors = list(state)
    return CapturedStep(partial(step, False), tensors), CapturedStep(partial(step, True), tensors)
