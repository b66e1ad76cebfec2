"""Runs as a report needs them: their rows, what they add up to, and a label for each."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from everlearn.metrics import summarise
from everlearn.report.labels import Setup, label_setups
from everlearn.results import Row, Run, find_runs, read_costs, read_rows
from everlearn.results.folder import PROVENANCE
from everlearn.results.lines import read_lines

Place = str | PathLike[str]


class Finished(NamedTuple):
    """A run as it lies on disk.

    Attributes:
        label: the method, with what sets it apart from its other runs.
        summary: as `everlearn.metrics.summarise` gives it.
        finished: whether the run reached its end; else the label says how far it came.
        stream: what the stream's file says, with its seed.
        settings: what the run's settings file says.
        sessions: where, when and by which command it was written, one entry a start.
    """

    folder: Path
    method: str
    seed: int
    label: str
    rows: list[Row]
    costs: list[Row]
    summary: dict[str, float | int | None]
    finished: bool
    stream: dict[str, Any]
    settings: dict[str, Any]
    sessions: list[Row]

    @property
    def measured(self) -> bool:
        """Whether anything was tested after learning a task."""
        return self.summary["average_accuracy"] is not None


def load_run(folder: Path, label: str | None = None) -> Finished:
    """Read one run; without a label the method's name is its label."""
    run = Run.open(folder)
    method, stream = run.settings.get("method"), json.loads(run.stream)
    if not isinstance(method, str):
        raise ValueError(f"{folder / 'settings.json'} must name a method, found {method!r}")
    rows, costs = read_rows(folder), read_costs(folder)
    return Finished(
        folder, method, stream.get("seed", 0), label or method, rows, costs, summarise(rows, costs),
        run.finished, stream, run.settings, read_lines(folder / PROVENANCE),
    )  # fmt: skip


def load_runs(paths: Place | Iterable[Place]) -> list[Finished]:
    """Read all runs in the folders and below them, sorted by label and seed."""
    places = [paths] if isinstance(paths, (str, PathLike)) else paths
    found = {folder.resolve(): folder for path in places for folder in _find(Path(path))}
    if not found:
        raise ValueError("no folder was given; name at least one that holds runs")
    loaded = [load_run(folder) for folder in found.values()]
    _check_streams(loaded)
    labels = label_setups([_setup(run) for run in loaded])
    named = [run._replace(label=label) for run, label in zip(loaded, labels, strict=True)]
    named.sort(key=lambda run: (run.label, run.seed))
    _check_twins(named)
    return named


def _find(path: Path) -> list[Path]:
    runs = find_runs(path)
    if not runs:
        raise FileNotFoundError(f"{path} holds no run; name a folder that runs were written to")
    return runs


def _setup(run: Finished) -> Setup:
    # Cards of one machine are alike: cuda:0 and cuda:1 are one device here.
    device = str(run.settings.get("device", "")).split(":")[0]
    stream = {"tasks": run.stream.get("tasks"), **_canvas(run)}
    choices = {**run.settings.get("settings", {}), **stream, "device": device}
    return Setup(run.method, choices, "" if run.finished else _progress(run))


def _canvas(run: Finished) -> dict[str, Any]:
    return {f"canvas {name}": value for name, value in run.stream.get("canvas", {}).items()}


def _progress(run: Finished) -> str:
    """How far an unfinished run came: it is never averaged with finished ones."""
    tasks, whole = run.summary["tasks"], run.stream.get("tasks")
    return f"{tasks} tasks so far" if whole is None else f"{tasks} of {whole} tasks"


def _check_streams(runs: list[Finished]) -> None:
    first = runs[0]
    for run in runs[1:]:
        for name in sorted((first.stream.keys() | run.stream.keys()) - _free(first, run)):
            here, there = first.stream.get(name), run.stream.get(name)
            if here != there:
                raise ValueError(
                    "runs of one report must learn streams that differ in seed and canvas only, and "
                    f"in tasks where both are class-incremental: {name} is {json.dumps(here)} in "
                    f"{first.folder} and {json.dumps(there)} in {run.folder}; report them apart"
                )


def _free(first: Finished, second: Finished) -> set[str]:
    """What may differ: a canvas is in the label, and a shorter stream begins the longer one."""
    scenarios = [run.stream.get("scenario") for run in (first, second)]
    alike = scenarios[0] == scenarios[1] == {"name": "class"}
    return {"seed", "canvas", "tasks"} if alike else {"seed", "canvas"}


def _check_twins(runs: list[Finished]) -> None:
    for run, other in pairwise(runs):
        if (run.label, run.seed) == (other.label, other.seed):
            raise ValueError(
                f"{run.folder} and {other.folder} are both {run.label} with seed {run.seed}; a seed "
                "counts once: leave one of them out"
            )
