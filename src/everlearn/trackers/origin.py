"""Where a run comes from: what its numbers follow from, and the rows that it goes on from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from everlearn.provenance import provenance
from everlearn.results import Row, Run, read_rows
from everlearn.results.checkpoint import read_header
from everlearn.results.folder import CHECKPOINT, digest

Config = dict[str, Any]


def describe(folder: Path) -> Config:
    """Gather method, settings, plan, stream and provenance of a run; unknown provenance is left out."""
    run, here = Run.open(folder), provenance()
    known = {name: value for name, value in here.items() if value is not None}
    return {**run.settings, "stream": json.loads(run.stream), "provenance": known}


def flat(config: Config, before: str = "") -> dict[str, bool | float | str]:
    """Name every value by the keys on the way to it; lists and None become JSON."""
    out: dict[str, bool | float | str] = {}
    for key, value in config.items():
        if isinstance(value, dict):
            out |= flat(value, f"{before}{key}/")
        else:
            out[before + key] = (
                value if isinstance(value, (bool, int, float, str)) else json.dumps(value)
            )
    return out


def read_kept(folder: Path) -> tuple[list[Row], int]:
    """Read the rows that a run goes on from, and the first step that is still to come."""
    path = folder / CHECKPOINT
    if not path.exists():
        return [], 0
    point = read_header(path, digest(folder))
    kept = [row for row in read_rows(folder) if row["learned"] <= point.task]
    return kept, point.step + 1


def logs(folder: Path) -> Path:
    """The folder of a run's logs, made where it is missing."""
    place = folder.resolve() / "logs"
    place.mkdir(exist_ok=True)
    return place
