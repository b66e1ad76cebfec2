"""The Tracker protocol, and one error for whatever goes wrong in a tracker's package."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol


class TrackerError(OSError):
    """A tracker cannot be opened or written to; the run's folder is not affected."""


class Tracker(Protocol):
    """Receives the metrics of one run."""

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write metrics at an optimizer step."""

    def close(self, finished: bool) -> None:
        """Write what is left; `finished` is False if the run may be resumed later."""


@contextmanager
def tracker_errors(name: str, *errors: type[Exception]) -> Iterator[None]:
    """Turn the errors of a tracker's package into a TrackerError with its name."""
    try:
        yield
    except errors as error:
        raise TrackerError(f"{name} failed: {error}") from error
