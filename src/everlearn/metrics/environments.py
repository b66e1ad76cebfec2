"""Environments that a learner found by itself, beside those there were."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from everlearn.metrics.rows import Floats, Ints, NotMeasuredError, Row, of_kind


class Found(NamedTuple):
    """How well environments were found.

    Attributes:
        opened: environments opened, the first counts.
        true: environments there were.
        delays: (S,) of each task that began a new environment, batches of it until one was opened, 1 with
            the first; NaN where none was.
        false: environments opened where none began, or a second time where one did.
    """

    opened: int
    true: int
    delays: Floats
    false: int

    @property
    def missed(self) -> int:
        """New environments for which none was opened while they were learned."""
        return int(np.isnan(self.delays).sum())

    @property
    def exact(self) -> bool:
        """Whether one was opened in each new environment, and none elsewhere."""
        return self.opened == self.true and not self.missed and not self.false


def environments(rows: Iterable[Row], kinds: Sequence[int] | None = None) -> Found:
    """Lay what a learner opened, by the notes of its task rows, beside where tasks began.

    Args:
        kinds: the environment of each task, where some come back; each task has its own otherwise.
    """
    tasks = {row["learned"]: row for row in of_kind(rows, "task")}
    kept = [tasks[learned] for learned in sorted(tasks)]
    notes = kept[-1].get("notes", {}) if kept else {}
    if notes.get("environments") is None:
        raise NotMeasuredError("no task row notes how many environments were opened; run vase, say")
    ends = np.array([row["step"] for row in kept], np.int64)
    of_task = _kinds(kinds, len(kept))
    new = [place for place in range(1, len(of_task)) if of_task[place] not in of_task[:place]]
    steps = _steps(notes)
    inside = np.searchsorted(ends, steps)  # the task in which each was opened
    delays = [_first(steps[inside == place]) - ends[place - 1] for place in new]
    matched = int((~np.isnan(delays)).sum())
    opened, true = int(notes["environments"]), len(set(of_task))
    return Found(opened, true, np.array(delays, np.float64), len(steps) - matched)


def _kinds(kinds: Sequence[int] | None, tasks: int) -> list[int]:
    if kinds is not None and len(kinds) < tasks:
        raise ValueError(f"kinds must name the environments of {tasks} tasks, found {len(kinds)}")
    return list(range(tasks) if kinds is None else kinds)[:tasks]


def _steps(notes: dict[str, float | None]) -> Ints:
    """The steps at which environments were opened, rising."""
    steps = [
        step for name, step in notes.items() if name.startswith("opened_") and step is not None
    ]
    return np.sort(np.array(steps, np.int64))


def _first(steps: Ints) -> float:
    return float(steps[0]) if len(steps) else np.nan
