"""Run folders written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from everlearn.runs import Run

# Correct answers out of 10 after learning task t (rows), on task i (columns)
MATRIX = [[9], [7, 8], [6, 7, 10]]


def accuracy_row(learned: int, tested: int, correct: int) -> dict[str, Any]:
    step = 5 * (learned + 1)
    return {
        "kind": "test", "step": step, "learned": learned, "tested": tested, "correct": correct,
        "total": 10,
    }  # fmt: skip


def cost_row(learned: int) -> dict[str, Any]:
    return {
        "kind": "task", "learned": learned, "step": 5 * (learned + 1), "images": 100,
        "seconds": 0.5, "evaluation_seconds": 0.25, "loss": 0.1, "peak_memory": 2_000_000,
        "bytes": {"net": 1_000_000, "memory": 500 * (learned + 1)}, "parameters": 250_000,
    }  # fmt: skip


@pytest.fixture
def write_run(tmp_path: Path):
    """Write a run with a matrix of correct answers out of 10, and additional rows."""

    def write(
        name: str,
        method: str = "dcl",
        seed: int = 0,
        matrix: list[list[int]] = MATRIX,
        more: list[dict[str, Any]] = [],  # noqa: B006
        finish: bool = True,
        settings: dict[str, Any] | None = None,
        device: str = "cpu",
        **stream: Any,
    ) -> Path:
        spec = {"everlearn_stream": 1, "seed": seed, "tasks": 3, **stream}
        kept = {"method": method, "settings": settings or {}, "plan": {}, "device": device}
        run = Run.create(tmp_path / name, json.dumps(spec), kept)
        with run.writing():
            for learned, row in enumerate(matrix):
                for tested, correct in enumerate(row):
                    run.append(accuracy_row(learned, tested, correct))
                run.append(cost_row(learned))
            for row in more:
                run.append(row)
            if finish:
                run.finish({})
        return run.folder

    return write
