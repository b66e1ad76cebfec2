"""ExportedStream: a stream over the files of an export; its tasks equal those that were written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from everlearn.render.canvas import Canvas
from everlearn.stream.export.formats import Format, find_format
from everlearn.stream.export.manifest import read_manifest, read_stream
from everlearn.stream.export.task_arrays import TaskArrays, TaskHeader, rebuild_task
from everlearn.stream.export.task_files import list_tasks, read_header, read_task_files
from everlearn.stream.task import Task


@dataclass(frozen=True)
class ExportedStream:
    """The tasks in a folder, by their numbers in the stream; each is read on request.

    Attributes:
        indices: the numbers of the tasks in the folder.
        text: the JSON of the stream that was exported.
    """

    folder: Path
    format: Format = field(repr=False)
    indices: tuple[int, ...]
    text: str = field(repr=False)

    @property
    def seed(self) -> int:
        """The seed of the exported stream."""
        return self._header.seed

    @property
    def tasks(self) -> int:
        """The number of tasks in the folder."""
        return len(self.indices)

    @property
    def canvas(self) -> Canvas:
        """The size, channels and dtype of the images."""
        layout = self._header.layouts["train"]
        channels, _, size = layout.shape
        return Canvas(size, channels, dtype=layout.dtype)

    @property
    def online(self) -> bool:
        """Whether every training image may be seen only once."""
        return self._header.online

    @property
    def class_ids(self) -> range:
        """The ids from 0 to the largest of any task in the folder."""
        headers = (read_header(self.folder, index) for index in self.indices)
        return range(1 + max(label for header in headers for label in header.classes))

    @property
    def _header(self) -> TaskHeader:
        if not self.indices:
            raise ValueError(f"{self.folder} holds no task yet; run the same export again")
        return read_header(self.folder, self.indices[0])

    def __len__(self) -> int:
        """Count the tasks in the folder."""
        return len(self.indices)

    def __getitem__(self, index: int) -> Task:
        """Read a task."""
        if isinstance(index, bool) or not isinstance(index, (int, np.integer)):
            raise TypeError(f"a task is chosen by a whole number, found {index!r}")
        if index not in self.indices:
            raise IndexError(f"task {index} is not in {self.folder}; there: {_spans(self.indices)}")
        header, files = read_task_files(self.folder, int(index))
        return rebuild_task(TaskArrays(header, self.format.unpack(header, files)))

    def __iter__(self) -> Iterator[Task]:
        """Iterate over the tasks in the folder."""
        return (self[index] for index in self.indices)

    def to_json(self) -> str:
        """Return the JSON of the stream that was exported."""
        return self.text

    def with_changes(self, **changes: Any) -> NoReturn:
        """Refuse changes: the tasks are fixed."""
        raise ValueError(
            f"an exported stream cannot change, found {', '.join(changes)}; change the stream that "
            "everlearn.stream.read_stream(exported.to_json()) gives and export that"
        )


def read(folder: str | PathLike[str]) -> ExportedStream:
    """Open a folder that `export` wrote."""
    place = Path(folder)
    manifest = read_manifest(place)
    text = read_stream(place, manifest)
    return ExportedStream(place, find_format(manifest["format"]), list_tasks(place), text)


def _spans(indices: tuple[int, ...]) -> str:
    """Write numbers in order as ranges: 0 .. 4, 7."""
    present = set(indices)
    starts = [i for i in indices if i - 1 not in present]
    ends = [i for i in indices if i + 1 not in present]
    spans = (f"{a}" if a == b else f"{a} .. {b}" for a, b in zip(starts, ends, strict=True))
    return ", ".join(spans) or "none"
