"""Groups of runs that differ only in their seed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from everlearn.metrics import curve, mean_or_none
from everlearn.report.loaded_run import LoadedRun

Accuracies = dict[int, float]  # by the number of tasks learned


class Group(NamedTuple):
    """Runs that differ only in their seed."""

    label: str
    method: str
    runs: list[LoadedRun]

    @property
    def seeds(self) -> list[int]:
        """The seeds, in ascending order."""
        return [run.seed for run in self.runs]

    @property
    def listed_seeds(self) -> str:
        """The seeds in ascending order as text: "10, 11, 12"."""
        return ", ".join(map(str, self.seeds))

    def values(self, name: str) -> dict[int, float]:
        """Return a number of the summary by seed, for the runs that measured it."""
        found = {run.seed: run.summary.get(name) for run in self.runs}
        return {seed: value for seed, value in found.items() if value is not None}

    def mean(self, name: str) -> float | None:
        """Return a number of the summary, mean over the seeds that measured it; None without any."""
        return mean_or_none(self.values(name).values())


def accuracy_by_tasks(run: LoadedRun) -> Accuracies:
    """Return accuracy over all tasks so far, by the number of tasks learned."""
    found = curve(run.rows)
    measured = ~np.isnan(found.accuracy)
    tasks = (found.learned + 1)[measured].tolist()
    return dict(zip(tasks, found.accuracy[measured].tolist(), strict=True))


def group_runs(runs: Iterable[LoadedRun]) -> list[Group]:
    """Group runs by label, the best average accuracy first."""
    groups: dict[str, Group] = {}
    for run in sorted(runs, key=lambda run: run.seed):
        groups.setdefault(run.label, Group(run.label, run.method, [])).runs.append(run)
    return sorted(groups.values(), key=lambda group: (-_score(group), group.label))


def _score(group: Group) -> float:
    mean = group.mean("average_accuracy")
    return -1.0 if mean is None else mean
