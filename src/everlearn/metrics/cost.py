"""What a run cost: steps, seconds, bytes, memory, parameters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from everlearn.metrics.rows import NotMeasuredError, Row, of_kind


class Cost(NamedTuple):
    """The cost of all tasks learned.

    Attributes:
        steps: of the optimiser.
        seconds: learning, without evaluation.
        evaluation_seconds: evaluating.
        images: trained on, each as often as it was used.
        bytes: stored when last counted, by what they hold.
        peak_memory: bytes.
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
        """Images trained on a second of learning; None where no time went by."""
        return self.images / self.seconds if self.seconds > 0 else None

    @property
    def total_bytes(self) -> int | None:
        """All bytes stored when last counted, if ever."""
        return None if self.bytes is None else sum(self.bytes.values())


def cost(rows: Iterable[Row]) -> Cost:
    """Add up the task rows; of two rows for one task the later one holds."""
    tasks = {row["learned"]: row for row in of_kind(rows, "task")}
    if not tasks:
        raise NotMeasuredError("no task row was found; a cost needs one a task learned")
    last = tasks[max(tasks)]
    # What is stored is counted when a learner is tested, not after every task.
    counted = [tasks[task] for task in sorted(tasks) if "bytes" in tasks[task]]
    stored: Row = counted[-1] if counted else {"bytes": None, "parameters": None}
    return Cost(
        steps=last["step"],
        seconds=sum(row["seconds"] for row in tasks.values()),
        evaluation_seconds=sum(row["evaluation_seconds"] for row in tasks.values()),
        images=sum(row["images"] for row in tasks.values()),
        bytes=stored["bytes"],
        peak_memory=max(row["peak_memory"] for row in tasks.values()),
        parameters=stored["parameters"],
    )
