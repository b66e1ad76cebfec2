"""Read an export: a stream over files, whose tasks equal those of the stream that was written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

import numpy as np

from everlearn.stream.export.content import Content, restore
from everlearn.stream.export.formats import Format, find_format
from everlearn.stream.export.manifest import read_manifest, read_stream
from everlearn.stream.export.unit import find_units, read_unit
from everlearn.stream.task import Task


@dataclass(frozen=True)
class ExportedStream:
    """The tasks in a folder, by their numbers in the stream; each is read when asked for.

    Attributes:
        indices: the tasks that are there.
        text: the JSON of the stream that was written.
    """

    folder: Path
    format: Format = field(repr=False)
    indices: tuple[int, ...]
    text: str = field(repr=False)

    def __len__(self) -> int:
        """Count the tasks that are there."""
        return len(self.indices)

    def __getitem__(self, index: int) -> Task:
        """Read a task."""
        if isinstance(index, bool) or not isinstance(index, (int, np.integer)):
            raise TypeError(f"a task is chosen by a whole number, found {index!r}")
        if index not in self.indices:
            raise IndexError(f"task {index} is not in {self.folder}; there: {_spans(self.indices)}")
        header, files = read_unit(self.folder, int(index))
        return restore(Content(header, self.format.unpack(header, files)))

    def __iter__(self) -> Iterator[Task]:
        """Go through the tasks that are there."""
        return (self[index] for index in self.indices)

    def to_json(self) -> str:
        """The JSON of the stream that was written."""
        return self.text


def read(folder: str | PathLike[str]) -> ExportedStream:
    """Open a folder that `export` wrote."""
    place = Path(folder)
    manifest = read_manifest(place)
    text = read_stream(place, manifest)
    return ExportedStream(place, find_format(manifest["format"]), find_units(place), text)


def _spans(indices: tuple[int, ...]) -> str:
    """Numbers in order, those that follow one another put together: 0 .. 4, 7."""
    there = set(indices)
    starts = [i for i in indices if i - 1 not in there]
    ends = [i for i in indices if i + 1 not in there]
    spans = (f"{a}" if a == b else f"{a} .. {b}" for a, b in zip(starts, ends, strict=True))
    return ", ".join(spans) or "none"
