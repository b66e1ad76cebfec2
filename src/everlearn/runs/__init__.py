"""A run is a folder with a stream, settings, rows, a checkpoint and provenance; it survives any kill."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from everlearn.runs.checkpoint import Checkpoint
from everlearn.runs.folder import find_runs
from everlearn.runs.packing import pack
from everlearn.runs.reading import read_costs, read_rows
from everlearn.runs.run import Run

if TYPE_CHECKING:
    from everlearn.runs.launch import ensure, load_learner, resume, start

__all__ = [
    "Checkpoint",
    "Run",
    "ensure",
    "find_runs",
    "load_learner",
    "pack",
    "read_costs",
    "read_rows",
    "resume",
    "start",
]
_LAUNCH = ("ensure", "load_learner", "resume", "start")


def __getattr__(name: str) -> Any:
    """Import torch only for the functions that need it, so that a report is redrawn without it."""
    if name not in _LAUNCH:
        raise AttributeError(f"module 'everlearn.runs' has no attribute {name!r}")
    return getattr(import_module("everlearn.runs.launch"), name)
