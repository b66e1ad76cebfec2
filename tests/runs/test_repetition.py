"""The other seeds of a run are found: runs whose first tasks differ from its own in the seed alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from everlearn.runs import Run
from everlearn.runs.repetition import read_other_seeds

STREAM = {"everlearn_stream": 1, "classes_per_task": 10}
RUN = {"method": "er", "settings": {"epochs": 5}, "plan": {}, "device": "cpu", "save_seconds": 30.0}


def write_run(
    folder: Path, seed: int, tasks: int = 3, untrained: int = 0, stream: Any = None, **changes: Any
) -> Path:
    """Write a finished run that was tested after each task; the first `untrained` take no step."""
    stream = {**STREAM, **(stream or {}), "seed": seed, "tasks": tasks}
    run = Run.create(folder, json.dumps(stream), {**RUN, **changes})
    costs: list[Any] = [
        {"kind": "task", "learned": task, "step": task, "loss": None if task < untrained else 0.5}
        for task in range(tasks)
    ]
    with run.writing():
        for cost in costs:
            run.append({**cost, "kind": "test", "tested": 0, "correct": seed, "total": 100})
            run.append(cost)
        run.finish({})
    return folder


def find_seeds(folder: Path, tasks: int) -> list[int]:
    """Return the seeds found beside a run, which `write_run` counts as correct."""
    return sorted(rows[0]["correct"] for rows in read_other_seeds(folder, tasks))  # type: ignore[typeddict-item]


def test_shorter_and_longer_runs_with_enough_tasks_are_other_seeds(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", 0, tasks=5)
    write_run(tmp_path / "b", 1, tasks=3)
    write_run(tmp_path / "c", 2, tasks=9)
    assert find_seeds(run, 3) == [1, 2]
    assert find_seeds(run, 4) == [2]


def test_rows_after_the_compared_tasks_are_left_out(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", 0, tasks=2)
    write_run(tmp_path / "b", 1, tasks=5)
    (rows,) = read_other_seeds(run, 2)
    assert {row["learned"] for row in rows} == {0, 1}


def test_a_setting_that_a_run_does_not_record_has_its_default(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", 0)
    for seed, averaging in ((1, 0.0), (2, 0.8)):
        settings = {"epochs": 5, "weight_averaging": averaging}
        write_run(tmp_path / str(seed), seed, settings=settings)
    assert find_seeds(run, 3) == [1]


@pytest.mark.parametrize(
    "change",
    [
        {"method": "fine-tuning"},
        {"settings": {"epochs": 6}},
        {"plan": {"every": 2}},
        {"stream": {"classes_per_task": 9}},
        {"untrained": 2},  # as joint training, which waits for the end of a run
        {"plan": [1]},
    ],
)
def test_runs_that_learn_otherwise_or_are_damaged_are_no_other_seeds(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    run = write_run(tmp_path / "a", 0)
    write_run(tmp_path / "b", 1, **change)
    assert find_seeds(run, 3) == []


def test_a_seed_counts_once_and_that_of_the_run_never(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", 0)
    write_run(tmp_path / "b", 0, tasks=5)
    write_run(tmp_path / "c", 1)
    write_run(tmp_path / "d", 1, tasks=5)
    assert find_seeds(run, 3) == [1]
