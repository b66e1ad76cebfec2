"""Repeat the first tasks of finished runs with the current version, without writing anything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

import numpy as np

from everlearn import evaluate
from everlearn.core.jsonl import read_json_lines
from everlearn.core.validate import check_int
from everlearn.evaluation import read_plan
from everlearn.methods import build
from everlearn.rows import Row
from everlearn.runs import find_runs, read_costs, read_rows
from everlearn.runs.folder import PROVENANCE, is_finished
from everlearn.runs.launch import open_run, recorded_settings
from everlearn.stream import read_stream

Folder = str | PathLike[str]


def sample_runs(folder: Folder, device: str, number: int, seed: int) -> list[Path]:
    """Draw finished runs that the same kind of device made, a CPU or a GPU; all if there are fewer."""
    check_int(number, "sample", 1, 10**9)
    on_gpu = device != "cpu"
    known = [run for run in find_runs(folder) if is_finished(run) and _used_gpu(run) == on_gpu]
    if not known:
        kind = "GPU" if on_gpu else "CPU"
        raise ValueError(
            f"{folder} holds no finished run that a {kind} made; give another --device"
        )
    drawn = np.random.default_rng(seed).permutation(len(known))[:number]
    return [known[index] for index in sorted(drawn)]


def count_tasks(folder: Path, tasks: int) -> int:
    """Return how many of the first `tasks` tasks a run learned."""
    return min(tasks, len(read_costs(folder)))


def read_first_rows(folder: Path, tasks: int) -> list[Row]:
    """Read the rows of the first tasks of a run, then their costs."""
    rows: list[Row] = [*read_rows(folder), *read_costs(folder)]
    return [row for row in rows if row["learned"] < tasks]


def repeat_run(
    folder: Path, tasks: int, device: str, data: str | Path | None = None
) -> Iterator[Row]:
    """Build the learner of a run anew and return the rows of its first tasks, as they come.

    A run that this version cannot repeat raises here, before the first row.

    Args:
        data: folder of the data sets, for a stream of recorded images.
    """
    run = open_run(folder)
    stream = read_stream(run.stream, data)
    method = run.settings["method"]
    learner = build(method, stream, device, **recorded_settings(method, run.settings["settings"]))
    rows = evaluate.run(stream, learner, read_plan(run.settings["plan"]))
    return _first_tasks(rows, tasks)


def other_seeds(folder: Path) -> list[Path]:
    """Return the finished runs beside a run that differ from it only in the seed."""
    setup = _setup_without_seed(folder)
    beside = (path for path in find_runs(folder.parent) if path != folder and is_finished(path))
    return [path for path in beside if _setup_without_seed(path) == setup]


def _first_tasks(rows: Iterator[Row], tasks: int) -> Iterator[Row]:
    # The loop is left early, not run with fewer tasks: the end of a run has tests of its own.
    for row in rows:
        yield row
        if row["kind"] == "task" and row["learned"] + 1 >= tasks:
            return


def _used_gpu(folder: Path) -> bool:
    sessions = read_json_lines(folder / PROVENANCE)
    return any(session.get("gpu") for session in sessions)


def _setup_without_seed(folder: Path) -> object:
    run = open_run(folder)
    setup = {name: run.settings[name] for name in ("method", "settings", "plan")}
    return setup, {**json.loads(run.stream), "seed": None}
