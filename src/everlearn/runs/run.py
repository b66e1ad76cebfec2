"""Run: a folder that is created once, has one writer at a time, and is resumed after any kill."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from everlearn.core.files import explain_write_errors
from everlearn.core.json_values import to_json_value
from everlearn.core.jsonl import RowWriter, encode_row, packed_path, read_json_lines
from everlearn.core.lock import locked
from everlearn.core.provenance import provenance
from everlearn.core.state import Arrays
from everlearn.core.validate import check_int
from everlearn.rows import Row
from everlearn.runs import folder as files
from everlearn.runs.checkpoint import (
    Checkpoint,
    Header,
    read_checkpoint,
    read_header,
    write_checkpoint,
)


class Run:
    """A run on disk. It is written inside `with run.writing():` and can be read at any time.

    Attributes:
        stream: the stream as JSON, unchanged.
        settings: everything else that determines the rows.
        gpu: the name of the GPU, for the provenance.
    """

    def __init__(self, folder: str | PathLike[str], gpu: str | None = None) -> None:
        """Read the stream and the settings of an existing run."""
        self.folder = files.check_run(folder)
        self.stream = files.read_stream(self.folder)
        self.settings = files.read_settings(self.folder)
        self.gpu = gpu
        self._setup_hash = files.hash_setup(self.folder)
        self._lines: dict[str, RowWriter] = {}

    @classmethod
    def create(
        cls,
        folder: str | PathLike[str],
        stream: str,
        settings: dict[str, Any],
        gpu: str | None = None,
    ) -> Run:
        """Create a run in a new or an empty folder."""
        files.create(Path(folder), stream, settings)
        return cls(folder, gpu)

    @classmethod
    def open(cls, folder: str | PathLike[str], gpu: str | None = None) -> Run:
        """Open an existing run."""
        return cls(folder, gpu)

    @property
    def finished(self) -> bool:
        """Whether the run is complete."""
        return files.is_finished(self.folder)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Become the only writer of the run; its rows go back to those of the last checkpoint."""
        with locked(self.folder), ExitStack() as stack:
            self._check_writable()
            files.remove_temporaries(self.folder)
            lines = self._rewind(stack)
            self._add_provenance()
            self._lines = lines
            try:
                yield
            finally:
                self._lines = {}

    def append(self, row: Row) -> None:
        """Write a row; rows of kind "task" go to costs.jsonl, as their times differ from run to run."""
        kind = row.get("kind")
        if not isinstance(kind, str):
            raise ValueError(f"a row must say its kind, such as 'test' or 'task', found {row!r}")
        name = files.COSTS if kind == "task" else files.ROWS
        lines = self._open_lines()[name]
        with self._explained(name):
            lines.append(row)

    def save(self, task: int, step: int, arrays: Arrays, values: dict[str, Any]) -> None:
        """Replace the last checkpoint; all rows written so far belong to the new one."""
        check_int(task, "task", -1, 2**63 - 1)
        check_int(step, "step", 0, 2**63 - 1)
        plain_values = to_json_value(values, "values", finite=False)
        with self._explained(files.CHECKPOINT):
            sizes = self._sync()
            header = Header(
                self._setup_hash, int(task), int(step), *sizes, plain_values, list(arrays)
            )
            write_checkpoint(self.folder / files.CHECKPOINT, header, arrays)

    def checkpoint(self) -> Checkpoint | None:
        """Read the last checkpoint; None where there is none."""
        path = self.folder / files.CHECKPOINT
        return read_checkpoint(path, self._setup_hash) if path.exists() else None

    def finish(self, summary: dict[str, Any]) -> None:
        """Mark the run as finished and write its summary."""
        text = json.dumps(to_json_value(summary, "summary"), indent=2)
        with self._explained(files.DONE):
            self._sync()
        files.write(self.folder / files.DONE, text.encode() + b"\n")

    def _check_writable(self) -> None:
        if self.finished:
            raise ValueError(
                f"{self.folder} is finished and takes no more rows; give another folder, or delete "
                f"{files.DONE} there to continue from its last checkpoint"
            )
        for name in (files.ROWS, files.COSTS):
            packed = packed_path(self.folder / name)
            if packed.exists():
                raise ValueError(f"{packed} is packed and takes no more rows; gunzip it first")

    def _rewind(self, stack: ExitStack) -> dict[str, RowWriter]:
        """Cut the rows written after the last checkpoint: they will be computed again."""
        path = self.folder / files.CHECKPOINT
        sizes = {files.ROWS: 0, files.COSTS: 0}
        if path.exists():
            header = read_header(path, self._setup_hash)
            sizes = {files.ROWS: header.rows, files.COSTS: header.costs}
        return {
            name: stack.enter_context(closing(RowWriter(self.folder / name, size)))
            for name, size in sizes.items()
        }

    def _add_provenance(self) -> None:
        path = self.folder / files.PROVENANCE
        sessions = [*read_json_lines(path), provenance(self.gpu)]
        files.write(path, b"".join(map(encode_row, sessions)))

    def _sync(self) -> tuple[int, int]:
        lines = self._open_lines()
        return lines[files.ROWS].sync(), lines[files.COSTS].sync()

    def _open_lines(self) -> dict[str, RowWriter]:
        if not self._lines:
            raise RuntimeError("a run is written inside `with run.writing():`")
        return self._lines

    def _explained(self, name: str) -> AbstractContextManager[None]:
        advice = f"resume the run with: everlearn resume {self.folder}"
        return explain_write_errors(name, self.folder, "the last checkpoint is kept", advice)
