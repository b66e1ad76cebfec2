"""Timing of a task: seconds spent learning, apart from those spent evaluating."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from everlearn.training.device import synchronized_time


class TaskTimer:
    """A clock that starts when it is made."""

    def __init__(self, device: str) -> None:
        """Start to count learning time."""
        self.evaluation_seconds = 0.0
        self._device = device
        self._began = perf_counter()

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Count the time inside as evaluation, once the device has finished the steps before."""
        began = synchronized_time(self._device)
        yield
        self.evaluation_seconds += perf_counter() - began

    @property
    def learning_seconds(self) -> float:
        """Seconds so far that were not spent evaluating."""
        return perf_counter() - self._began - self.evaluation_seconds
