"""Methods by name: METHODS has a record of each, `build` makes a learner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlearn.core.settings import change_settings
from everlearn.methods.method import Method
from everlearn.methods.registry import METHODS, find_method

if TYPE_CHECKING:
    from everlearn.learner import Learner
    from everlearn.stream import TaskStream

__all__ = ["METHODS", "Method", "build", "find_method"]


def build(name: str, stream: TaskStream, device: str = "auto", **changes: object) -> Learner:
    """Make a learner for a stream.

    Args:
        device: "cpu", "cuda", "cuda:1" or "auto": a GPU where there is one.
        changes: settings of the method, by name; `lr` is short for `learning_rate`.
    """
    # Imported here: records of methods are read without torch.
    from everlearn.training.device import find_device

    method = find_method(name)
    dtype = stream.canvas.dtype
    if dtype != "float32":
        raise ValueError(
            f"methods learn from images of dtype float32, found {dtype}; change the canvas"
        )
    settings = change_settings(method.settings(), changes, name)
    return method.build(stream, settings, find_device(device))
