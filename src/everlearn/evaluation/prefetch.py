"""Prefetching: the next task is prepared while a GPU still works through the steps of the last one."""

from __future__ import annotations

from collections.abc import Iterator

from everlearn.stream import Task, TaskStream
from everlearn.training.cuda import transfer_stream


class TaskLoader:
    """Iterates over the tasks of a run; `prefetch` prepares the next one.

    Attributes:
        next: the task after the current one once it is prepared; None at the end of the run.
    """

    def __init__(self, stream: TaskStream, start: int, end: int | None, device: str) -> None:
        """Prepare nothing yet.

        Args:
            end: the index after the last task; None if the run is endless.
        """
        self._stream = stream
        self._index = start
        self._end = end
        self._device = device
        self.next: Task | None = None

    def __iter__(self) -> Iterator[Task]:
        """Yield each task, prepared by `prefetch` or made on demand."""
        while self._end is None or self._index < self._end:
            task = self._stream[self._index] if self.next is None else self.next
            self.next = None
            yield task
            self._index += 1

    def prefetch(self) -> None:
        """Make the next task on the device, in a stream beside the one that learns."""
        following = self._index + 1
        with transfer_stream(self._device):
            self.next = None if following == self._end else self._stream[following].to(self._device)
