"""Where a run comes from: its configuration, and the rows of earlier sessions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from everlearn.core.provenance import provenance
from everlearn.rows import Row
from everlearn.runs import Run, read_rows
from everlearn.runs.checkpoint import read_header
from everlearn.runs.folder import CHECKPOINT, hash_setup

Config = dict[str, Any]


def describe(folder: Path) -> Config:
    """Return method, settings, plan, stream and provenance of a run, without unknown provenance."""
    run = Run.open(folder)
    known = {name: value for name, value in provenance().items() if value is not None}
    return {**run.settings, "stream": json.loads(run.stream), "provenance": known}


def flatten(config: Config, prefix: str = "") -> dict[str, bool | float | str]:
    """Return every value by its path of keys, as in stream/tasks; lists and None become JSON."""
    out: dict[str, bool | float | str] = {}
    for key, value in config.items():
        if isinstance(value, dict):
            out |= flatten(value, f"{prefix}{key}/")
        else:
            out[prefix + key] = (
                value if isinstance(value, (bool, int, float, str)) else json.dumps(value)
            )
    return out


def read_earlier_rows(folder: Path) -> tuple[list[Row], int]:
    """Read the rows up to the checkpoint that a run resumes from, and the next step."""
    path = folder / CHECKPOINT
    if not path.exists():
        return [], 0
    point = read_header(path, hash_setup(folder))
    earlier = [row for row in read_rows(folder) if row["learned"] <= point.task]
    return earlier, point.step + 1


def log_folder(folder: Path) -> Path:
    """Return the folder of a run's logs; make it if it is missing."""
    path = folder.resolve() / "logs"
    path.mkdir(exist_ok=True)
    return path
