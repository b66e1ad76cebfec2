"""Runs of trials written by hand, and all experiments at the smallest scale."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from everlearn.disk import write_file
from everlearn.experiments.trial import Trial
from everlearn.results import Run
from everlearn.results.lines import encode

from ..conftest import Told, call

Rows = Iterable[dict[str, Any]]


@pytest.fixture
def keep(tmp_path: Path) -> Callable[..., Path]:
    """Write the run of a trial with the rows that are given."""

    def write(trial: Trial, rows: Rows, seed: int = 0, finish: bool = True) -> Path:
        stream = json.dumps({"everlearn_stream": 1, "seed": seed, "tasks": 500})
        kept = {"method": trial.method, "settings": {}, "plan": {}, "device": "cpu"}
        made = Run.create(tmp_path / trial.folder(seed), stream, kept)
        with made.writing():
            for row in rows:
                made.append(row)
            if finish:
                made.finish({})
        return made.folder

    return write


@pytest.fixture
def keep_part(tmp_path: Path) -> Callable[..., Path]:
    """Write a measurement with the rows that are given."""

    def write(part: str, rows: Rows) -> Path:
        head = {"kind": "origin", "settings": {}, "command": "everlearn reproduce"}
        path = tmp_path / "parts" / f"{part}.jsonl"
        return write_file(path, b"".join(map(encode, [head, *rows])))

    return write


@pytest.fixture
def latents(tmp_path: Path) -> Path:
    """Write latents of 50 shapes in 11 sessions where a lab of this folder has its own."""
    labels, sessions = (table.ravel() for table in np.mgrid[:50, :11])
    path = tmp_path / "data" / "latents" / "idsprites-50.npz"
    path.parent.mkdir(parents=True)
    np.savez(
        path, latents=np.ones((550, 2, 2, 2), np.float16), labels=labels, sessions=sessions,
        test=np.isin(sessions, (2, 6, 9)), about=np.array("{}"),
    )  # fmt: skip
    return path


@pytest.fixture(scope="session")
def command() -> Callable[..., Told]:
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
