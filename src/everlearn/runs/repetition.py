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
    """Draw finished runs that the same kind of device made, a CPU or a GPU; all if there are fewer.

    A run with a damaged provenance may be drawn for either.
    """
    check_int(number, "sample", 1, 10**9)
    on_gpu = device != "cpu"
    known = [run for run in find_runs(folder) if is_finished(run) and _may_be_made(run, on_gpu)]
    if not known:
        kind = "GPU" if on_gpu else "CPU"
        raise ValueError(
            f"{folder} holds no finished run that a {kind} made; give another --device"
        )
    drawn = np.random.default_rng(seed).permutation(len(known))[:number]
    return [known[index] for index in sorted(drawn)]


def check_provenance(folder: Path) -> None:
    """Raise where the provenance of a run is damaged."""
    read_json_lines(folder / PROVENANCE)


def count_tasks(folder: Path, tasks: int) -> int:
    """Return how many of the first `tasks` tasks a run learned."""
    learned = len(read_costs(folder))
    if not learned:
        raise ValueError(f"{folder} has no costs of a task; put back a copy of its files")
    return min(tasks, learned)


def read_first_rows(folder: Path, tasks: int) -> list[Row]:
    """Read the rows of the first tasks of a run, then their costs."""
    rows: list[Row] = [*read_rows(folder), *read_costs(folder)]
    for row in rows:
        if not isinstance(row.get("learned"), int):
            raise ValueError(
                f"{folder} has a row of kind {row['kind']!r} that does not say the last task learned; put "
                "back a copy of its files"
            )
    return [row for row in rows if row["learned"] < tasks]


def repeat_run(
    folder: Path, tasks: int, device: str, data: str | Path | None = None
) -> Iterator[Row]:
    """Build the learner of a run anew and yield the rows of its first tasks, as they come.

    Args:
        data: folder of the data sets, for a stream of recorded images.
    """
    run = open_run(folder)
    stream = read_stream(run.stream, data)
    method = run.settings["method"]
    learner = build(method, stream, device, **recorded_settings(method, run.settings["settings"]))
    for row in evaluate.run(stream, learner, read_plan(run.settings["plan"])):
        yield row
        # The loop is left early, not run with fewer tasks: the end of a run has tests of its own.
        if row["kind"] == "task" and row["learned"] + 1 >= tasks:
            return


def read_other_seeds(folder: Path, tasks: int) -> list[list[Row]]:
    """Read the first tasks of the finished runs beside a run, one for each other seed.

    But for the seed, all that the first tasks depend on is equal; the runs may have different lengths.
    A folder that holds no readable run of a method is none of them.
    """
    setup, seed = _read_setup(folder, tasks)
    beside = filter(is_finished, find_runs(folder.parent))
    found = [_read_if_alike(path, setup, tasks) for path in beside]
    # The last one of a seed is kept: a longer run may have more evaluations.
    by_seed = dict(sorted(found, key=lambda run: len(run[1])))
    return [rows for other, rows in by_seed.items() if rows and other != seed]


def _read_if_alike(folder: Path, setup: object, tasks: int) -> tuple[object, list[Row]]:
    """Return the seed and the rows of a run; no rows if it is not alike or cannot be read."""
    try:
        found, seed = _read_setup(folder, tasks)
        return seed, read_first_rows(folder, tasks) if found == setup else []
    except (ValueError, TypeError, OSError):
        return None, []


def _read_setup(folder: Path, tasks: int) -> tuple[object, object]:
    """Return what the first tasks of a run depend on besides its seed, and the seed."""
    run = open_run(folder)
    method = run.settings["method"]
    settings = recorded_settings(method, run.settings["settings"])
    stream = json.loads(run.stream)
    seed = stream.pop("seed", None)
    stream.pop("tasks", None)
    # A shorter run has fewer; joint training may wait for the last task of its run.
    trained = [cost.get("loss") is not None for cost in read_costs(folder)[:tasks]]
    return (method, settings, read_plan(run.settings["plan"]), stream, trained), seed


def _may_be_made(folder: Path, on_gpu: bool) -> bool:
    try:
        sessions = read_json_lines(folder / PROVENANCE)
    except (ValueError, OSError):
        return True
    return any(session.get("gpu") for session in sessions) == on_gpu
