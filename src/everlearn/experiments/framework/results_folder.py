"""ResultsFolder: the runs and measurements of experiments on disk, read without torch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast

from everlearn.core.jsonl import PACKED, read_json_lines
from everlearn.experiments.framework.trial import PAPER, Settings, Trial, at_scale
from everlearn.metrics import summarise
from everlearn.report import Group, LoadedRun
from everlearn.rows import MeasurementRow, OriginRow, check_names, of_kind
from everlearn.runs.folder import is_finished
from everlearn.runs.load import load_run

MEASUREMENTS = "parts"  # the folder of their files
ORIGIN = "origin"
# Numbers of a summary that depend on how many classes the whole stream has.
_SIZES = ("bytes", "parameters", "peak_memory")


class ResultsFolder:
    """The results of one scale; each run is read once, when it is first needed."""

    def __init__(self, folder: Path, scale: str) -> None:
        self.folder = folder
        self.scale = scale
        self._runs: dict[str, LoadedRun] = {}

    def settings(self, by_scale: Mapping[str, Settings]) -> Settings:
        """Return the settings of an experiment at this scale."""
        return at_scale(by_scale, self.scale)

    def note(self, text: str, of_paper_runs: str) -> str:
        """Return a note; its second part, which is true of the runs of scale `paper` alone, only there."""
        return f"{text} {of_paper_runs}" if self.scale == PAPER else text

    def groups(self, trials: Iterable[Trial], tasks: int | None = None) -> list[Group]:
        """Return the finished runs of each trial, in the order of the trials; empty groups are left out.

        Args:
            tasks: cut all runs after so many tasks, so that all are compared after as many, and leave out
                those that were not tested then; at smaller scales, whose streams are shorter, as many as
                the longest run has. By default only the longest runs of each trial are returned, whole.
        """
        loaded = [(trial, self._load_trial(trial)) for trial in trials]
        if tasks is None:
            chosen = [(trial, _longest(runs)) for trial, runs in loaded]
        else:
            common = self._common_length([runs for _, runs in loaded], tasks)
            chosen = [(trial, _cut(runs, common)) for trial, runs in loaded]
        return [Group(trial.title, trial.method, runs) for trial, runs in chosen if runs]

    def _common_length(self, runs: Iterable[Sequence[LoadedRun]], tasks: int) -> int:
        """Return after how many tasks runs are compared: fewer at scales with shorter streams."""
        if self.scale == PAPER:
            return tasks
        return min(
            tasks, max((run.stream["tasks"] for part in runs for run in part), default=tasks)
        )

    def missing(self, trials: Iterable[Trial]) -> list[str]:
        """Return the names of the runs that do not exist or are not finished."""
        names = [trial.folder(seed) for trial in trials for seed in trial.seeds_at(self.scale)]
        return [name for name in names if not is_finished(self.folder / name)]

    def rows(self, measurement: str) -> list[MeasurementRow]:
        """Return the rows of a measurement without its origin; none where it was not made."""
        return [row for row in self._read(measurement) if row["kind"] != ORIGIN]

    def unmeasured(self, *measurements: str) -> list[str]:
        """Return the measurements that have no rows."""
        return [name for name in measurements if not self.rows(name)]

    def origins(self, *measurements: str) -> dict[str, OriginRow]:
        """Return the provenance rows of the measurements that were made, by name."""
        found = {name: of_kind(self._read(name), OriginRow) for name in measurements}
        return {name: rows[0] for name, rows in found.items() if rows}

    def measurements(self, prefix: str) -> list[str]:
        """Return the names of all measurements that start with a prefix, packed or not."""
        paths = (self.folder / MEASUREMENTS).glob(f"{prefix}*.jsonl*")
        return sorted({path.name.removesuffix(PACKED).removesuffix(".jsonl") for path in paths})

    def _read(self, measurement: str) -> list[MeasurementRow]:
        path = self.folder / MEASUREMENTS / f"{measurement}.jsonl"
        rows = read_json_lines(path)
        check_names(rows, path)
        return cast("list[MeasurementRow]", rows)

    def _load_trial(self, trial: Trial) -> list[LoadedRun]:
        names = [trial.folder(seed) for seed in trial.seeds_at(self.scale)]
        runs = [self._load(name, trial) for name in names if is_finished(self.folder / name)]
        return [run._replace(label=trial.title) for run in runs if run.measured]

    def _load(self, name: str, trial: Trial) -> LoadedRun:
        if name not in self._runs:
            run = load_run(self.folder / name)
            _check_method(run, trial)
            every = math.lcm(trial.plan.get("every", 1), run.trained_every)
            self._runs[name] = subsample_tests(run, every)
        return self._runs[name]


def _check_method(run: LoadedRun, trial: Trial) -> None:
    if run.method != trial.method:
        raise ValueError(
            f"{run.folder} holds a run of {run.method}, but its name belongs to {trial.method}; rename it"
        )


def _longest(runs: Sequence[LoadedRun]) -> list[LoadedRun]:
    longest = max((run.stream["tasks"] for run in runs), default=0)
    return [run for run in runs if run.stream["tasks"] == longest]


def _cut(runs: Sequence[LoadedRun], tasks: int) -> list[LoadedRun]:
    """Return the runs as they were after so many tasks, without those that were not tested then."""
    cut = [first_tasks(run, tasks) for run in runs]
    return [run for run in cut if run.measured and run.summary["tasks"] == tasks]


def first_tasks(run: LoadedRun, tasks: int) -> LoadedRun:
    """Return a run as if its stream had ended after so many tasks; a shorter one as it is.

    What it stored is unknown: a classifier has outputs for the classes of the whole stream from the start.
    """
    if run.stream["tasks"] <= tasks:
        return run
    rows = [row for row in run.rows if row["learned"] < tasks]
    costs = [row for row in run.costs if row["learned"] < tasks]
    stream = {**run.stream, "tasks": tasks}
    summary = {**summarise(rows, costs), **dict.fromkeys(_SIZES)}
    return run._replace(rows=rows, costs=costs, summary=summary, stream=stream)


def subsample_tests(run: LoadedRun, every: int) -> LoadedRun:
    """Keep the tests after every so many tasks and after the last.

    A method that is trained after so many tasks, such as joint training, knows nothing new in between.
    """
    last = max((row["learned"] for row in run.rows if row["kind"] == "test"), default=-1)
    kept = [
        row
        for row in run.rows
        if row["kind"] != "test" or row["learned"] == last or (row["learned"] + 1) % every == 0
    ]
    if len(kept) == len(run.rows):
        return run
    return run._replace(rows=kept, summary=summarise(kept, run.costs))


def runs_of(groups: Sequence[Group]) -> list[LoadedRun]:
    """Return all runs of the groups."""
    return [run for group in groups for run in group.runs]
