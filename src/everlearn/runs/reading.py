"""Read the rows of a run from its folder; torch is not needed."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import cast

from everlearn.core.jsonl import JsonObject, read_json_lines
from everlearn.rows import Row, TaskRow, check_names
from everlearn.runs.folder import COSTS, ROWS, check_run


def read_rows(folder: str | PathLike[str]) -> list[Row]:
    """Read all rows of a run except its costs; an incomplete last line is left out."""
    return cast("list[Row]", _read(check_run(folder) / ROWS))


def read_costs(folder: str | PathLike[str]) -> list[TaskRow]:
    """Read the cost rows of a run (kind "task"); an incomplete last line is left out."""
    return cast("list[TaskRow]", _read(check_run(folder) / COSTS))


def _read(path: Path) -> list[JsonObject]:
    rows = read_json_lines(path)
    check_names(rows, path)
    return rows
