"""Run folders written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from everlearn.results import Run

# right of 10 after learning task t (rows), on task i (columns)
MATRIX = [[9], [7, 8], [6, 7, 10]]


def exam_row(learned: int, tested: int, right: int) -> dict[str, Any]:
    step = 5 * (learned + 1)
    return {
        "kind": "test", "step": step, "learned": learned, "tested": tested, "right": right,
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
    """Write a run with a matrix of right answers of 10, and more rows where they are given."""

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
                for tested, right in enumerate(row):
                    run.append(exam_row(learned, tested, right))
                run.append(cost_row(learned))
            for row in more:
                run.append(row)
            if finish:
                run.finish({})
        return run.folder

    return write
