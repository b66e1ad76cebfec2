"""Write the files of a task together: first to a temporary folder, then renamed into place."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path

from everlearn.core import files
from everlearn.core.files import sync

_TEMPORARY = ".part-"
_TASK_FILE = re.compile(r"(task_\d{6,})(\.npz|-[a-z]+-\d{6}\.tar)?")


def write_together(folder: Path, name: str, contents: Iterable[tuple[str, bytes]]) -> None:
    """Write files that belong together; the last one is renamed last and marks the set as complete."""
    temporary = folder / f"{_TEMPORARY}{name}"
    try:
        with explain_write_errors(name, folder):
            _publish(temporary, folder, _stage(temporary, contents))
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def explain_write_errors(name: str, folder: Path) -> AbstractContextManager[None]:
    """Add to a disk error what was being written, what is kept and what to do."""
    return files.explain_write_errors(
        name, folder, "finished tasks are kept", "run the same export again"
    )


def remove_unfinished(folder: Path) -> None:
    """Remove what a killed export left: temporary folders, and files of tasks without their JSON file."""
    for path in list(folder.iterdir()):
        task = _TASK_FILE.fullmatch(path.name)
        incomplete = task is not None and not (folder / f"{task[1]}.json").exists()
        if path.name.startswith(_TEMPORARY) or incomplete:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _stage(temporary: Path, contents: Iterable[tuple[str, bytes]]) -> list[str]:
    """Write the files into a temporary folder; return the names in it, in order."""
    temporary.mkdir()
    names: dict[str, None] = {}
    for name, data in contents:
        path = temporary / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        names[Path(name).parts[0]] = None
    # Sync after all are written: several times faster for thousands of small images.
    for base, _, leaves in os.walk(temporary):
        for leaf in [*leaves, ""]:
            sync(os.path.join(base, leaf))
    return list(names)


def _publish(temporary: Path, folder: Path, names: list[str]) -> None:
    """Move the files into place; a folder in the way goes to the temporary one and is removed with it."""
    for name in names:
        if (folder / name).is_dir():
            os.replace(folder / name, temporary / f"{name}.old")
        os.replace(temporary / name, folder / name)
    sync(folder)
