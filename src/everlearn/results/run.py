"""Run: the folder of one run, created once, written by one process at a time, resumed after any kill."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from everlearn.border import check_whole
from everlearn.disk import explained
from everlearn.lock import locked
from everlearn.provenance import provenance
from everlearn.results import folder as files
from everlearn.results.checkpoint import (
    Checkpoint,
    Header,
    read_checkpoint,
    read_header,
    write_checkpoint,
)
from everlearn.results.lines import Lines, Row, encode, read_lines
from everlearn.results.plain import plain
from everlearn.results.state import Arrays


class Run:
    """A run on disk. It is written inside `with run.writing():` and can be read at any time.

    Attributes:
        stream: the stream's JSON, as it was given.
        settings: what else the rows follow from.
        gpu: the name of the card that computes, for the provenance.
    """

    def __init__(self, folder: str | PathLike[str], gpu: str | None = None) -> None:
        """Read what the run is; `create` makes one, `open` is this."""
        self.folder = files.check_run(folder)
        self.stream = files.read_stream(self.folder)
        self.settings = files.read_settings(self.folder)
        self.gpu = gpu
        self._digest = files.digest(self.folder)
        self._lines: dict[str, Lines] = {}

    @classmethod
    def create(
        cls,
        folder: str | PathLike[str],
        stream: str,
        settings: dict[str, Any],
        gpu: str | None = None,
    ) -> Run:
        """Make a new run in a new or an empty folder."""
        files.create(Path(folder), stream, settings)
        return cls(folder, gpu)

    @classmethod
    def open(cls, folder: str | PathLike[str], gpu: str | None = None) -> Run:
        """Read a run that is there."""
        return cls(folder, gpu)

    @property
    def finished(self) -> bool:
        """Whether all of the run is done."""
        return files.is_finished(self.folder)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the run as its one writer, with the rows as they were at the last checkpoint."""
        with locked(self.folder), ExitStack() as stack:
            self._check_unfinished()
            files.sweep(self.folder)
            lines = self._rewind(stack)
            self._add_provenance()
            self._lines = lines
            try:
                yield
            finally:
                self._lines = {}

    def append(self, row: Row) -> None:
        """Write a row; those of kind "task" hold times and go to a file of their own."""
        kind = row.get("kind")
        if not isinstance(kind, str):
            raise ValueError(f"a row must say its kind, such as 'test' or 'task', found {row!r}")
        name = files.COSTS if kind == "task" else files.ROWS
        lines = self._open_lines()[name]
        with self._explained(name):
            lines.append(row)

    def save(self, task: int, step: int, arrays: Arrays, values: dict[str, Any]) -> None:
        """Put a checkpoint in the place of the last; the rows so far belong to it."""
        check_whole(task, "task", -1, 2**63 - 1)
        check_whole(step, "step", 0, 2**63 - 1)
        kept = plain(values, "values", finite=False)
        with self._explained(files.CHECKPOINT):
            header = Header(self._digest, int(task), int(step), *self._sync(), kept, list(arrays))
            write_checkpoint(self.folder / files.CHECKPOINT, header, arrays)

    def checkpoint(self) -> Checkpoint | None:
        """Read the last checkpoint, if there is one."""
        path = self.folder / files.CHECKPOINT
        return read_checkpoint(path, self._digest) if path.exists() else None

    def finish(self, summary: dict[str, Any]) -> None:
        """Mark the run as done, with what is worth knowing of it."""
        text = json.dumps(plain(summary, "summary"), indent=2)
        with self._explained(files.DONE):
            self._sync()
        files.write(self.folder / files.DONE, text.encode() + b"\n")

    def _check_unfinished(self) -> None:
        if self.finished:
            raise ValueError(
                f"{self.folder} is finished and takes no more rows; give another folder, or delete "
                f"{files.DONE} there to go on from its last checkpoint"
            )

    def _rewind(self, stack: ExitStack) -> dict[str, Lines]:
        """Cut the rows that no checkpoint covers: they will be made again."""
        path, sizes = self.folder / files.CHECKPOINT, {files.ROWS: 0, files.COSTS: 0}
        if path.exists():
            header = read_header(path, self._digest)
            sizes = {files.ROWS: header.rows, files.COSTS: header.costs}
        return {
            name: stack.enter_context(closing(Lines(self.folder / name, size)))
            for name, size in sizes.items()
        }

    def _add_provenance(self) -> None:
        path = self.folder / files.PROVENANCE
        sessions = [*read_lines(path), provenance(self.gpu)]
        files.write(path, b"".join(map(encode, sessions)))

    def _sync(self) -> tuple[int, int]:
        lines = self._open_lines()
        return lines[files.ROWS].sync(), lines[files.COSTS].sync()

    def _open_lines(self) -> dict[str, Lines]:
        if not self._lines:
            raise RuntimeError("a run is written inside `with run.writing():`")
        return self._lines

    def _explained(self, name: str) -> AbstractContextManager[None]:
        again = f"resume the run with: everlearn resume {self.folder}"
        return explained(name, self.folder, "the last checkpoint is kept", again)
