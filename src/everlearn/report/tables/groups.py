"""Groups of runs that differ only in their seed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from everlearn.report.loaded_run import LoadedRun


class Group(NamedTuple):
    """Runs that differ only in their seed."""

    label: str
    method: str
    runs: list[LoadedRun]

    @property
    def seeds(self) -> list[int]:
        """The seeds, in ascending order."""
        return [run.seed for run in self.runs]

    def values(self, name: str) -> dict[int, float]:
        """Return a number of the summary by seed, for the runs that measured it."""
        found = {run.seed: run.summary.get(name) for run in self.runs}
        return {seed: value for seed, value in found.items() if value is not None}


def group_runs(runs: Iterable[LoadedRun]) -> list[Group]:
    """Group runs by label, the best average accuracy first."""
    groups: dict[str, Group] = {}
    for run in sorted(runs, key=lambda run: run.seed):
        groups.setdefault(run.label, Group(run.label, run.method, [])).runs.append(run)
    return sorted(groups.values(), key=lambda group: (-_score(group), group.label))


def _score(group: Group) -> float:
    values = group.values("average_accuracy").values()
    return sum(values) / len(values) if values else -1.0
