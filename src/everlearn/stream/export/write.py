"""Write a stream to disk task by task; a killed export continues when it is run again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from everlearn.core.lock import locked
from everlearn.stream.export.files import explain_write_errors, remove_unfinished, write_together
from everlearn.stream.export.formats import find_format
from everlearn.stream.export.manifest import MANIFEST, STREAM, make_manifest, read_manifest
from everlearn.stream.export.task_arrays import draw_task
from everlearn.stream.export.task_files import (
    is_complete,
    task_stem,
    to_checksummed,
    with_checksums,
)
from everlearn.stream.protocol import TaskStream


def export(
    stream: TaskStream,
    folder: str | PathLike[str],
    format: str = "npz",
    tasks: Iterable[int] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Write tasks into a folder; complete tasks that are already there are kept.

    Args:
        format: npz, png (with a CSV table) or tar (WebDataset shards).
        tasks: the tasks to write; by default all of a finite stream.
        progress: called after every task with the number done and the total.
    """
    pack = find_format(format).pack
    chosen = _choose(stream, tasks)
    place = Path(folder)
    text = stream.to_json()
    manifest = make_manifest(text, format)
    _make_folder(place)
    with locked(place):
        _check_folder(place, manifest)
        remove_unfinished(place)
        _write_manifest(place, text.encode(), manifest)
        for done, index in enumerate(chosen, 1):
            if not is_complete(place, index):
                arrays = draw_task(stream[index])
                write_together(place, task_stem(index), with_checksums(arrays.header, pack(arrays)))
            if progress is not None:
                progress(done, len(chosen))
    return place


def _make_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file; give a folder to export to")
    with explain_write_errors("the export", folder):
        folder.mkdir(parents=True, exist_ok=True)


def _choose(stream: TaskStream, tasks: Iterable[int] | None) -> Sequence[int]:
    if tasks is None:
        try:
            return range(len(stream))
        except TypeError:
            raise ValueError(
                "an endless stream cannot be exported in full; choose tasks, for example tasks=range(10)"
            ) from None
    chosen = list(dict.fromkeys(tasks))
    for index in chosen:
        if isinstance(index, bool) or not isinstance(index, (int, np.integer)) or index < 0:
            raise ValueError(f"tasks must be whole numbers of 0 or more, found {index!r}")
    return [int(index) for index in chosen]


def _check_folder(folder: Path, manifest: dict[str, Any]) -> None:
    """Refuse a folder that holds anything but this export."""
    if not (folder / MANIFEST).exists():
        if any(not path.name.startswith(".") for path in folder.iterdir()):
            raise ValueError(
                f"{folder} holds other files and no export; give a new or an empty folder"
            )
        return
    found = read_manifest(folder)
    for key, value in manifest.items():
        if found.get(key) != value:
            raise ValueError(
                f"{folder} holds another export: its {key} is {found.get(key)!r}, not {value!r} "
                f"(see {STREAM} and {MANIFEST} there); give another folder, or delete this one"
            )


def _write_manifest(folder: Path, text: bytes, manifest: dict[str, Any]) -> None:
    """Write the manifest and the stream's JSON, unless they are there."""
    files = {MANIFEST: to_checksummed(manifest), STREAM: text}
    if any(not (folder / n).exists() or (folder / n).read_bytes() != files[n] for n in files):
        write_together(folder, "export", files.items())
