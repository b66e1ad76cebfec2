"""Fixtures: hand-written runs of trials, and all experiments at the smallest scale."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from everlearn.core.files import write_file
from everlearn.core.jsonl import encode_row
from everlearn.experiments.framework.trial import Trial
from everlearn.runs import Run

from ..conftest import Result, call

Rows = Iterable[dict[str, Any]]


def accuracies(*pairs: tuple[int, float]) -> list[dict[str, Any]]:
    """Return rows of tests of the first task after so many tasks, with 1,000 images each."""
    return [
        {
            "kind": "test", "step": tasks, "learned": tasks - 1, "tested": 0,
            "correct": round(1000 * accuracy), "total": 1000,
        }
        for tasks, accuracy in pairs
    ]  # fmt: skip


@pytest.fixture
def write_run(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes the run of a trial with given rows."""

    def write(
        trial: Trial, rows: Rows, seed: int = 0, finish: bool = True, tasks: int = 500
    ) -> Path:
        canvas = {"size": 64}
        about = {"everlearn_stream": 1, "seed": seed, "tasks": tasks, "canvas": canvas}
        kept = dict(trial.settings)
        settings = {"method": trial.method, "settings": kept, "plan": {}, "device": "cpu"}
        run = Run.create(tmp_path / trial.folder(seed), json.dumps(about), settings)
        with run.writing():
            for row in rows:
                run.append(row)
            if finish:
                run.finish({})
        return run.folder

    return write


@pytest.fixture
def write_seeds(write_run: Callable[..., Path]) -> Callable[..., None]:
    """Return a function that writes the same rows for every seed of a trial."""

    def write(trial: Trial, rows: Rows, tasks: int = 500) -> None:
        copied = list(rows)
        for seed in trial.seeds:
            write_run(trial, copied, seed, tasks=tasks)

    return write


@pytest.fixture
def write_measurement(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a measurement with given rows."""

    def write(name: str, rows: Rows) -> Path:
        origin = {"kind": "origin", "settings": {}, "command": "everlearn reproduce"}
        path = tmp_path / "parts" / f"{name}.jsonl"
        return write_file(path, b"".join(map(encode_row, [origin, *rows])))

    return write


@pytest.fixture
def latents(tmp_path: Path) -> Path:
    """Write latents of 50 shapes in 11 sessions to where a runner of this folder expects them."""
    labels, sessions = (table.ravel() for table in np.mgrid[:50, :11])
    path = tmp_path / "data" / "latents" / "idsprites-50.npz"
    path.parent.mkdir(parents=True)
    np.savez(
        path, latents=np.ones((550, 2, 2, 2), np.float16), labels=labels, sessions=sessions,
        test=np.isin(sessions, (2, 6, 9)), about=np.array("{}"),
    )  # fmt: skip
    return path


@pytest.fixture(scope="session")
def command() -> Callable[..., Result]:
    """Run a command line in this process."""
    return call


@pytest.fixture(scope="session")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of `everlearn reproduce all --scale tiny`, made once for all workers."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with (shared / "reproduce.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        out = shared / "reproduced"
        if not out.exists():
            with pytest.MonkeyPatch.context() as patch:
                patch.delenv("EVERLEARN_DATA", raising=False)
                told = call("reproduce", "all", "--scale", "tiny", "--out", out, "--device", "cpu")
            assert told.code == 0, told.errors
    return out / "tiny"
