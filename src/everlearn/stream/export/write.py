"""Write a stream to disk, task by task; run again after a kill, it goes on where it stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from everlearn.lock import locked
from everlearn.stream.export.content import take
from everlearn.stream.export.disk import explained, sweep, write_whole
from everlearn.stream.export.formats import find_format
from everlearn.stream.export.manifest import MANIFEST, STREAM, describe, read_manifest
from everlearn.stream.export.unit import is_whole, seal, stem, vouched
from everlearn.stream.task import Task


class Source(Protocol):
    """Anything that gives tasks by number and can be written as JSON, as streams do."""

    def __len__(self) -> int:
        """Count the tasks."""

    def __getitem__(self, index: int) -> Task:
        """Make a task."""

    def to_json(self) -> str:
        """Write what the tasks follow from."""


def export(
    stream: Source,
    folder: str | PathLike[str],
    format: str = "npz",
    tasks: Iterable[int] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Write tasks into a folder; those that are there already, undamaged, are kept.

    Args:
        format: npz, png (with a CSV table) or tar (WebDataset shards).
        tasks: which; all of a stream that ends by default.
        progress: called after every task with the number done and the number of all.
    """
    pack, chosen, place = find_format(format).pack, _choose(stream, tasks), Path(folder)
    text = stream.to_json()
    wanted = describe(text, format)
    _make(place)
    with locked(place):
        _check(place, wanted)
        sweep(place)
        _begin(place, text.encode(), wanted)
        for done, index in enumerate(chosen, 1):
            if not is_whole(place, index):
                content = take(stream[index])
                write_whole(place, stem(index), vouched(content.header, pack(content)))
            if progress is not None:
                progress(done, len(chosen))
    return place


def _make(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file; give a folder to export to")
    with explained("the export", folder):
        folder.mkdir(parents=True, exist_ok=True)


def _choose(stream: Source, tasks: Iterable[int] | None) -> Sequence[int]:
    if tasks is None:
        try:
            return range(len(stream))
        except TypeError:
            raise ValueError(
                "an endless stream is exported in part: name the tasks, for example tasks=range(10)"
            ) from None
    chosen = list(dict.fromkeys(tasks))
    for index in chosen:
        if isinstance(index, bool) or not isinstance(index, (int, np.integer)) or index < 0:
            raise ValueError(f"tasks must be whole numbers of 0 or more, found {index!r}")
    return [int(index) for index in chosen]


def _check(folder: Path, wanted: dict[str, Any]) -> None:
    """Refuse a folder that holds something else than this export."""
    if not (folder / MANIFEST).exists():
        if any(not path.name.startswith(".") for path in folder.iterdir()):
            raise ValueError(
                f"{folder} holds other files and no export; give a new or an empty folder"
            )
        return
    found = read_manifest(folder)
    for key, value in wanted.items():
        if found.get(key) != value:
            raise ValueError(
                f"{folder} holds another export: its {key} is {found.get(key)!r}, not {value!r} "
                f"(see {STREAM} and {MANIFEST} there); give another folder, or delete this one"
            )


def _begin(folder: Path, text: bytes, wanted: dict[str, Any]) -> None:
    """Write what the export is, where that is not there yet."""
    files = {MANIFEST: seal(wanted), STREAM: text}
    if any(not (folder / n).exists() or (folder / n).read_bytes() != files[n] for n in files):
        write_whole(folder, "export", files.items())
