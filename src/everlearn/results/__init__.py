"""A run is a folder: stream, settings, rows, checkpoint, provenance; it outlives any kill."""

from everlearn.results.checkpoint import Checkpoint
from everlearn.results.folder import find_runs
from everlearn.results.lines import Row, read_costs, read_rows
from everlearn.results.run import Run
from everlearn.results.state import flatten, unflatten

__all__ = [
    "Checkpoint",
    "Row",
    "Run",
    "find_runs",
    "flatten",
    "read_costs",
    "read_rows",
    "unflatten",
]
