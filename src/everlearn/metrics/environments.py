"""Environments that a learner inferred, compared with the true ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from everlearn.metrics.measured import Floats, Ints, NotMeasuredError
from everlearn.rows import Row, TaskRow, of_kind


class InferredEnvironments(NamedTuple):
    """How well environments were inferred.

    Attributes:
        opened: environments that the learner opened, counting the first.
        true: environments in the stream.
        delays: (S,) for each task that began a new environment, batches until the learner opened one,
            counting from 1; NaN if it did not.
        false: environments opened where none began, or a second time where one did.
    """

    opened: int
    true: int
    delays: Floats
    false: int

    @property
    def missed(self) -> int:
        """Count the new environments for which none was opened while they were learned."""
        return int(np.isnan(self.delays).sum())

    @property
    def exact(self) -> bool:
        """Whether one environment was opened for each new one, and none elsewhere."""
        return self.opened == self.true and not self.missed and not self.false


def inferred_environments(
    rows: Iterable[Row], labels: Sequence[int] | None = None
) -> InferredEnvironments:
    """Compare the steps at which a learner opened environments with those at which tasks began.

    Args:
        labels: the environment of each task, where some recur; each task has its own by default.
    """
    tasks = {row["learned"]: row for row in of_kind(rows, TaskRow)}
    kept = [tasks[learned] for learned in sorted(tasks)]
    diagnostics = kept[-1].get("diagnostics", {}) if kept else {}
    count = diagnostics.get("environments")
    if count is None:
        raise NotMeasuredError(
            "no task row has the diagnostic 'environments'; only learners that infer environments, "
            "such as vase, report it"
        )
    ends = np.array([row["step"] for row in kept], np.int64)
    environments = _labels(labels, len(kept))
    new = [k for k in range(1, len(kept)) if environments[k] not in environments[:k]]
    steps = _opening_steps(diagnostics)
    task = np.searchsorted(ends, steps)  # the task in which each was opened
    delays = np.array([_first(steps[task == k]) - ends[k - 1] for k in new], np.float64)
    matched = int((~np.isnan(delays)).sum())
    return InferredEnvironments(int(count), len(set(environments)), delays, len(steps) - matched)


def _labels(labels: Sequence[int] | None, tasks: int) -> list[int]:
    if labels is not None and len(labels) < tasks:
        raise ValueError(f"labels must name the environments of {tasks} tasks, found {len(labels)}")
    return list(range(tasks) if labels is None else labels)[:tasks]


def _opening_steps(diagnostics: Mapping[str, float | None]) -> Ints:
    """Return the steps at which environments were opened, rising."""
    steps = [
        step
        for name, step in diagnostics.items()
        if name.startswith("opened_") and step is not None
    ]
    return np.sort(np.array(steps, np.int64))


def _first(steps: Ints) -> float:
    return float(steps[0]) if len(steps) else np.nan
