"""Rows as files of JSON lines: written whole line by whole line, read while they grow."""

from __future__ import annotations

import json
import os
from os import PathLike
from pathlib import Path
from typing import Any

from everlearn.results.folder import COSTS, ROWS, check_run
from everlearn.results.plain import plain

Row = dict[str, Any]


class Lines:
    """A file that rows are appended to; a row is in it whole or not at all."""

    def __init__(self, path: Path, size: int) -> None:
        """Open the file and cut what stands after the first `size` bytes."""
        self._file = path.open("ab", buffering=0)
        try:
            _cut(self._file.fileno(), size, path)
        except BaseException:
            self._file.close()
            raise

    def append(self, row: Row) -> None:
        """Write a row; readers see it at once."""
        line, size = encode(row), self._size()
        try:
            self._write(line)
        except BaseException:
            os.ftruncate(self._file.fileno(), size)
            raise

    def sync(self) -> int:
        """Wait until all rows are on the disk; return the bytes they take."""
        os.fsync(self._file.fileno())
        return self._size()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def _write(self, line: bytes) -> None:
        written = 0
        while written < len(line):
            written += self._file.write(line[written:])


def encode(row: Row) -> bytes:
    """Write a row as a line of JSON."""
    return json.dumps(plain(row, "row"), allow_nan=False).encode() + b"\n"


def read_rows(folder: str | PathLike[str]) -> list[Row]:
    """Read the rows of a run but those of its costs; a last line that is not whole is left out."""
    return read_lines(check_run(folder) / ROWS)


def read_costs(folder: str | PathLike[str]) -> list[Row]:
    """Read the rows of a run's costs, kind "task"; a last line that is not whole is left out."""
    return read_lines(check_run(folder) / COSTS)


def read_lines(path: Path) -> list[Row]:
    """Read a file of JSON lines; one that is not there holds none."""
    data = path.read_bytes() if path.exists() else b""
    return [_decode(line, f"{path}, line {n}") for n, line in enumerate(data.split(b"\n")[:-1], 1)]


def _decode(line: bytes, place: str) -> Row:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise ValueError(f"{place} is damaged: {error}; put back a copy of the file") from None
    if not isinstance(row, dict):
        raise ValueError(f"{place} is damaged: a row must be a dict; put back a copy of the file")
    return row


def _cut(descriptor: int, size: int, path: Path) -> None:
    found = os.fstat(descriptor).st_size
    if found < size:
        raise ValueError(
            f"{path} is damaged: it has {found} bytes and the checkpoint counts on {size}; put back "
            "a copy of the file, or delete checkpoint.npz to start the run from its beginning"
        )
    os.ftruncate(descriptor, size)
