"""Files that are there whole or not at all: written under a temporary name, then renamed."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path

from everlearn import disk
from everlearn.disk import sync

_PART = ".part-"
_UNIT = re.compile(r"(task_\d{6,})(\.npz|-[a-z]+-\d{6}\.tar)?")


def write_whole(folder: Path, name: str, files: Iterable[tuple[str, bytes]]) -> None:
    """Write files that belong together; the last is renamed last, and says that all are there."""
    part = folder / f"{_PART}{name}"
    try:
        with explained(name, folder):
            _publish(part, folder, _stage(part, files))
    finally:
        shutil.rmtree(part, ignore_errors=True)


def explained(name: str, folder: Path) -> AbstractContextManager[None]:
    """Say of a disk's error what was being written, what is kept and what to do."""
    return disk.explained(name, folder, "finished tasks are kept", "run the same export again")


def sweep(folder: Path) -> None:
    """Remove what a killed export left: temporaries, and files of a task not yet vouched for."""
    for path in list(folder.iterdir()):
        unit = _UNIT.fullmatch(path.name)
        if path.name.startswith(_PART) or (unit and not (folder / f"{unit[1]}.json").exists()):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _stage(part: Path, files: Iterable[tuple[str, bytes]]) -> list[str]:
    """Write the files into a temporary folder; return the names in it, in order."""
    part.mkdir()
    names: dict[str, None] = {}
    for name, data in files:
        path = part / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        names[Path(name).parts[0]] = None
    # All written before any is waited for: several times faster for thousands of small images.
    for base, _, leaves in os.walk(part):
        for leaf in [*leaves, ""]:
            sync(os.path.join(base, leaf))
    return list(names)


def _publish(part: Path, folder: Path, names: list[str]) -> None:
    """Rename the files to their places; a folder that is in the way goes where it will be removed."""
    for name in names:
        if (folder / name).is_dir():
            os.replace(folder / name, part / f"{name}.old")
        os.replace(part / name, folder / name)
    sync(folder)
