"""What experiments left on disk, read without torch: runs of trials, and rows of measurements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from everlearn.experiments.trial import PAPER, SMALL, Settings, Trial
from everlearn.report import Finished, Group, load_run
from everlearn.results import Row, find_runs
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
        return settings_at(every, self.scale)

    def groups(self, trials: Iterable[Trial]) -> list[Group]:
        """The runs of each trial that have measured something, in the order of the trials."""
        gathered = [(trial, self._gather(trial)) for trial in trials]
        return [Group(trial.title, trial.method, runs) for trial, runs in gathered if runs]

    def missing(self, trials: Iterable[Trial]) -> list[str]:
        """The names of runs that are not there or not finished."""
        names = [trial.folder(seed) for trial in trials for seed in trial.seeds]
        return [name for name in names if not self._is_done(name)]

    def rows(self, part: str) -> list[Row]:
        """The rows of a measurement, less its origin; none where it was not made."""
        return [row for row in self._lines(part) if row["kind"] != ORIGIN]

    def origin(self, part: str) -> Row | None:
        """Where, when and by which command a measurement was made."""
        lines = self._lines(part)
        return lines[0] if lines else None

    def all_runs(self) -> list[Path]:
        """The folders of all runs."""
        return find_runs(self.folder)

    def _lines(self, part: str) -> list[Row]:
        return read_lines(self.folder / PARTS / f"{part}.jsonl")

    def _gather(self, trial: Trial) -> list[Finished]:
        names = [trial.folder(seed) for seed in trial.seeds]
        runs = [self._run(name, trial.title) for name in names if self._is_done(name)]
        return [run for run in runs if run.measured]

    def _run(self, name: str, label: str) -> Finished:
        if name not in self._runs:
            self._runs[name] = load_run(self.folder / name)
        return self._runs[name]._replace(label=label)

    def _is_done(self, name: str) -> bool:
        return (self.folder / name / "done.json").exists()


def settings_at(every: dict[str, Settings], scale: str) -> Settings:
    """An experiment's settings at a scale: all but `paper` are those of `small`."""
    return every[PAPER if scale == PAPER else SMALL]


def label_runs(groups: Sequence[Group]) -> list[Finished]:
    """All runs of some groups."""
    return [run for group in groups for run in group.runs]
