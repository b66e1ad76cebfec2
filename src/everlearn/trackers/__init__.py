"""Trackers: the numbers of a run, streamed to TensorBoard, Weights & Biases or MLflow."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from os import PathLike
from pathlib import Path

from everlearn.lock import locked
from everlearn.results import Row
from everlearn.trackers.log import log_rows
from everlearn.trackers.mlflow import Mlflow
from everlearn.trackers.numbers import measure
from everlearn.trackers.origin import Config, describe, read_kept
from everlearn.trackers.tensorboard import TensorBoard
from everlearn.trackers.tracker import Tracker, TrackerError
from everlearn.trackers.wandb import Wandb

__all__ = [
    "TRACKERS",
    "Tracker",
    "TrackerError",
    "check_trackers",
    "log_rows",
    "log_run",
    "measure",
]

# Opened with a run's folder, what it is and its next step; package and extra have the same name.
TRACKERS: dict[str, Callable[[Path, Config, int], Tracker]] = {
    "tensorboard": TensorBoard,
    "wandb": Wandb,
    "mlflow": Mlflow,
}


def check_trackers(names: Sequence[str]) -> None:
    """Raise where a tracker is not known or its package is not installed."""
    for name in names:
        if name not in TRACKERS:
            raise ValueError(f"unknown tracker {name!r}; known: {', '.join(TRACKERS)}")
        found = find_spec(name)
        # A folder that a tracker made where one works is found, too, but has no origin.
        if found is None or found.origin is None:
            raise ImportError(
                f"the tracker {name} needs a package that is missing; "
                f"run: pip install 'everlearn[{name}]'"
            )


def log_run(
    rows: Iterable[Row], folder: str | PathLike[str], names: Sequence[str]
) -> Generator[Row]:
    """Give the rows of a run on as they are; open trackers before the first and write to them."""
    check_trackers(names)
    if names:
        place = Path(folder)
        with locked(place):  # a run that is being written has its trackers already
            before, first = read_kept(place)
            trackers = _open(names, place, first)
        rows = log_rows(rows, trackers, before)
    yield from rows


def _open(names: Sequence[str], folder: Path, first: int) -> list[Tracker]:
    """Open trackers: all, or none."""
    config, opened = describe(folder), list[Tracker]()
    try:
        for name in names:
            opened.append(TRACKERS[name](folder, config, first))
    except BaseException:
        for tracker in opened:
            with suppress(TrackerError):  # the first error is the one to tell
                tracker.close(False)
        raise
    return opened
