"""What every tracker is: two verbs, and one error for whatever goes wrong in its package."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol


class TrackerError(OSError):
    """A tracker cannot be opened or written to; the run's own folder is not touched by it."""


class Tracker(Protocol):
    """Where the numbers of one run go."""

    def write(self, step: int, numbers: Mapping[str, float]) -> None:
        """Write numbers at an optimiser step."""

    def close(self, finished: bool) -> None:
        """Write what is left; say whether the run is finished or may go on later."""


@contextmanager
def told(name: str, *errors: type[Exception]) -> Iterator[None]:
    """Turn the errors of a tracker's package into one that names the tracker."""
    try:
        yield
    except errors as error:
        raise TrackerError(f"{name} failed: {error}") from error
