"""Trackers: the metrics of a run, streamed to TensorBoard, Weights & Biases or MLflow."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from os import PathLike
from pathlib import Path

from everlearn.core.lock import locked
from everlearn.rows import Row
from everlearn.runs.trackers.log import log_rows
from everlearn.runs.trackers.metrics import metrics_of
from everlearn.runs.trackers.mlflow import Mlflow
from everlearn.runs.trackers.provenance import Config, describe, read_earlier_rows
from everlearn.runs.trackers.tensorboard import TensorBoard
from everlearn.runs.trackers.tracker import Tracker, TrackerError
from everlearn.runs.trackers.wandb import Wandb

__all__ = [
    "TRACKERS",
    "Tracker",
    "TrackerError",
    "check_trackers",
    "log_rows",
    "log_run",
    "metrics_of",
]

# Made from a run's folder, its configuration and its next step; each has the name of its package and extra.
TRACKERS: dict[str, Callable[[Path, Config, int], Tracker]] = {
    "tensorboard": TensorBoard,
    "wandb": Wandb,
    "mlflow": Mlflow,
}


def check_trackers(names: Sequence[str]) -> None:
    """Raise where a tracker is unknown or its package is not installed."""
    for name in names:
        if name not in TRACKERS:
            raise ValueError(f"unknown tracker {name!r}; known: {', '.join(TRACKERS)}")
        found = find_spec(name)
        # A folder that a tracker made in the working directory is found as well, but has no origin.
        if found is None or found.origin is None:
            raise ImportError(
                f"the tracker {name} needs a package that is missing; "
                f"run: pip install 'everlearn[{name}]'"
            )


def log_run(
    rows: Iterable[Row], folder: str | PathLike[str], names: Sequence[str]
) -> Generator[Row]:
    """Pass on the rows of a run, and log their metrics; trackers are opened before the first row."""
    check_trackers(names)
    if names:
        path = Path(folder)
        with locked(path):  # a run that is being written has its trackers already
            before, first_step = read_earlier_rows(path)
            trackers = _open(names, path, first_step)
        rows = log_rows(rows, trackers, before)
    yield from rows


def _open(names: Sequence[str], folder: Path, first_step: int) -> list[Tracker]:
    """Open all trackers, or none if one fails."""
    config = describe(folder)
    opened: list[Tracker] = []
    try:
        for name in names:
            opened.append(TRACKERS[name](folder, config, first_step))
    except BaseException:
        for tracker in opened:
            with suppress(TrackerError):  # the first error is the one to report
                tracker.close(False)
        raise
    return opened
