"""What experiments left on disk, read without torch: runs of trials, and rows of measurements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from everlearn.experiments.trial import Settings, Trial, at_scale
from everlearn.metrics import summarise
from everlearn.report import Finished, Group, load_run
from everlearn.results import Row
from everlearn.results.folder import is_finished
from everlearn.results.lines import read_lines

PARTS = "parts"
ORIGIN = "origin"


class Found:
    """The folder of one scale. Runs are read once."""

    def __init__(self, folder: Path, scale: str) -> None:
        """Read nothing yet."""
        self.folder, self.scale = folder, scale
        self._runs: dict[str, Finished] = {}

    def settings(self, every: dict[str, Settings]) -> Settings:
        """An experiment's settings at this scale."""
        return at_scale(every, self.scale)

    def groups(self, trials: Iterable[Trial]) -> list[Group]:
        """The runs of each trial that have measured something, in the order of the trials."""
        gathered = [(trial, self._gather(trial)) for trial in trials]
        return [Group(trial.title, trial.method, runs) for trial, runs in gathered if runs]

    def missing(self, trials: Iterable[Trial]) -> list[str]:
        """The names of runs that are not there or not finished."""
        names = [trial.folder(seed) for trial in trials for seed in trial.seeds]
        return [name for name in names if not is_finished(self.folder / name)]

    def rows(self, part: str) -> list[Row]:
        """The rows of a measurement, less its origin; none where it was not made."""
        return [row for row in self._lines(part) if row["kind"] != ORIGIN]

    def origins(self, *parts: str) -> dict[str, Row]:
        """Where, when and by which command measurements were made, those that were."""
        found = {part: self._lines(part) for part in parts}
        return {part: rows[0] for part, rows in found.items() if rows and rows[0]["kind"] == ORIGIN}

    def parts(self, start: str) -> list[str]:
        """The names of all measurements that begin so."""
        return sorted(path.stem for path in (self.folder / PARTS).glob(f"{start}*.jsonl"))

    def _lines(self, part: str) -> list[Row]:
        path = self.folder / PARTS / f"{part}.jsonl"
        rows = read_lines(path)
        if not all(isinstance(row.get("kind"), str) for row in rows):
            raise ValueError(
                f"{path} has a row that does not say its kind; put back a copy of the file"
            )
        return rows

    def _gather(self, trial: Trial) -> list[Finished]:
        names = [trial.folder(seed) for seed in trial.seeds]
        runs = [self._run(name, trial) for name in names if is_finished(self.folder / name)]
        return [run._replace(label=trial.title) for run in runs if run.measured]

    def _run(self, name: str, trial: Trial) -> Finished:
        if name not in self._runs:
            run = load_run(self.folder / name)
            _check_method(run, trial)
            self._runs[name] = thin(run, trial.plan.get("every", 1))
        return self._runs[name]


def _check_method(run: Finished, trial: Trial) -> None:
    if run.method != trial.method:
        raise ValueError(
            f"{run.folder} is a run of {run.method}, and is named as one of {trial.method}; rename it"
        )


def thin(run: Finished, every: int) -> Finished:
    """Keep the tests after so many tasks and after the last; in between, joint training knows nothing."""
    last = max((row["learned"] for row in run.rows if row["kind"] == "test"), default=-1)
    kept = [
        row
        for row in run.rows
        if row["kind"] != "test" or row["learned"] == last or (row["learned"] + 1) % every == 0
    ]
    if len(kept) == len(run.rows):
        return run
    return run._replace(rows=kept, summary=summarise(kept, run.costs))


def runs_of(groups: Sequence[Group]) -> list[Finished]:
    """All runs of some groups."""
    return [run for group in groups for run in group.runs]
