"""What a run cost: steps, seconds, bytes, memory, parameters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from everlearn.metrics.measured import NotMeasuredError
from everlearn.rows import Row, TaskRow, of_kind


class Cost(NamedTuple):
    """The cost of all tasks learned.

    Attributes:
        steps: of the optimizer.
        seconds: spent learning, without evaluation.
        evaluation_seconds: spent evaluating.
        images: trained on, each as often as it was used.
        bytes: of each part of the learner's state, when last counted.
        peak_memory: in bytes.
        parameters: when last counted.
    """

    steps: int
    seconds: float
    evaluation_seconds: float
    images: int
    bytes: dict[str, int] | None
    peak_memory: int
    parameters: int | None

    @property
    def images_per_second(self) -> float | None:
        """Training images per second of learning; None if no time passed."""
        return self.images / self.seconds if self.seconds > 0 else None

    @property
    def total_bytes(self) -> int | None:
        """Bytes of the learner's state when last counted, if ever."""
        return None if self.bytes is None else sum(self.bytes.values())


def cost(rows: Iterable[Row]) -> Cost:
    """Add up the task rows; of two rows for one task the later counts."""
    tasks = {row["learned"]: row for row in of_kind(rows, TaskRow)}
    if not tasks:
        raise NotMeasuredError("no task row was found; a cost needs one for each task learned")
    # The state is counted when a learner is tested, not after every task.
    counted = [tasks[task] for task in sorted(tasks) if "bytes" in tasks[task]]
    return Cost(
        steps=tasks[max(tasks)]["step"],
        seconds=sum(row["seconds"] for row in tasks.values()),
        evaluation_seconds=sum(row["evaluation_seconds"] for row in tasks.values()),
        images=sum(row["images"] for row in tasks.values()),
        bytes=counted[-1]["bytes"] if counted else None,
        peak_memory=max(row["peak_memory"] for row in tasks.values()),
        parameters=counted[-1]["parameters"] if counted else None,
    )
