"""Load runs for a report: their rows, their summaries and a label for each."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any

from everlearn.core.jsonl import read_json_lines
from everlearn.metrics import summarise
from everlearn.report.loaded_run import LoadedRun
from everlearn.report.tables.labels import Setup, label_setups
from everlearn.runs import Run, find_runs, read_costs, read_rows
from everlearn.runs.folder import PROVENANCE

Folder = str | PathLike[str]


def load_run(folder: Path, label: str | None = None) -> LoadedRun:
    """Load one run; its label is the name of its method unless one is given."""
    run = Run.open(folder)
    method = run.settings.get("method")
    stream = json.loads(run.stream)
    if not isinstance(method, str):
        raise ValueError(f"{folder / 'settings.json'} must name a method, found {method!r}")
    rows = read_rows(folder)
    costs = read_costs(folder)
    return LoadedRun(
        folder, method, stream.get("seed", 0), label or method, rows, costs, summarise(rows, costs),
        run.finished, stream, run.settings, read_json_lines(folder / PROVENANCE),
    )  # fmt: skip


def load_runs(paths: Folder | Iterable[Folder]) -> list[LoadedRun]:
    """Load all runs in and below the folders, sorted by label and seed."""
    parents = [paths] if isinstance(paths, (str, PathLike)) else paths
    folders = {folder.resolve(): folder for path in parents for folder in _find(Path(path))}
    if not folders:
        raise ValueError("no folder was given; name at least one that holds runs")
    loaded = [load_run(folder) for folder in folders.values()]
    _check_streams(loaded)
    _check_splits(loaded)
    labels = label_setups([_setup(run) for run in loaded])
    labelled = [run._replace(label=label) for run, label in zip(loaded, labels, strict=True)]
    labelled.sort(key=lambda run: (run.label, run.seed))
    _check_duplicates(labelled)
    return labelled


def _find(path: Path) -> list[Path]:
    runs = find_runs(path)
    if not runs:
        raise FileNotFoundError(f"{path} holds no run; name a folder that runs were written to")
    return runs


def _setup(run: LoadedRun) -> Setup:
    # The GPUs of one machine count as one device: cuda:0 and cuda:1 get the same label.
    device = str(run.settings.get("device", "")).split(":")[0]
    stream = {"tasks": run.stream.get("tasks"), **_canvas(run)}
    choices = {**run.method_settings, **stream, "device": device}
    return Setup(run.method, choices, "" if run.finished else _progress(run))


def _canvas(run: LoadedRun) -> dict[str, Any]:
    return {f"canvas {name}": value for name, value in run.stream.get("canvas", {}).items()}


def _progress(run: LoadedRun) -> str:
    """Describe how far an unfinished run came: it is never averaged with finished ones."""
    tasks = run.summary["tasks"]
    total = run.stream.get("tasks")
    return f"{tasks} tasks so far" if total is None else f"{tasks} of {total} tasks"


def _check_streams(runs: list[LoadedRun]) -> None:
    first = runs[0]
    for run in runs[1:]:
        for name in sorted((first.stream.keys() | run.stream.keys()) - _may_differ(first, run)):
            expected = first.stream.get(name)
            found = run.stream.get(name)
            if expected != found:
                raise ValueError(
                    "runs of one report must learn streams that differ in seed and canvas only, and "
                    f"in tasks where both are class-incremental: {name} is {json.dumps(expected)} in "
                    f"{first.folder} and {json.dumps(found)} in {run.folder}; report them separately"
                )


def _check_splits(runs: list[LoadedRun]) -> None:
    for run in runs[1:]:
        if run.split != runs[0].split:
            raise ValueError(
                f"runs of one report must be evaluated on the same images: {runs[0].folder} on "
                f"{runs[0].split}, {run.folder} on {run.split}; report them separately"
            )


def _may_differ(first: LoadedRun, second: LoadedRun) -> set[str]:
    """Name the stream settings that may differ within one report.

    The canvas is part of the label; a shorter class-incremental stream is the start of a longer one.
    """
    scenarios = [run.stream.get("scenario") for run in (first, second)]
    class_incremental = scenarios[0] == scenarios[1] == {"name": "class"}
    return {"seed", "canvas", "tasks"} if class_incremental else {"seed", "canvas"}


def _check_duplicates(runs: list[LoadedRun]) -> None:
    for run, other in pairwise(runs):
        if (run.label, run.seed) == (other.label, other.seed):
            raise ValueError(
                f"{run.folder} and {other.folder} are both {run.label} with seed {run.seed}; a seed "
                "counts once: leave out one of them"
            )
