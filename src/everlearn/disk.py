"""Files that are whole or not there."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_ADVICE = {
    errno.ENOSPC: "free space there",
    errno.EDQUOT: "free some of your quota there",
    errno.EFBIG: "raise the limit on the size of files",
}


def write_file(path: Path, content: bytes) -> Path:
    """Write a file under another name and rename it, so that it is whole or not there."""
    with writing(path) as file:
        file.write(content)
    return path


@contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """Give a file to write to, in a folder made for it; it is whole or not there, or say why not."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            yield file
    except FileExistsError:
        raise NotADirectoryError(f"cannot write {path}: {path.parent} is not a folder") from None
    except OSError as error:
        raise OSError(error.errno, f"cannot write {path}: {error.strerror}") from None


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Give a file to write to; it takes the place of the path once it is on the disk, or never."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        if os.name == "posix":  # Windows cannot open a folder
            sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def sync(path: str | Path) -> None:
    """Make a file, or the names in a folder, last through a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def explained(
    name: str, folder: Path, kept: str = "", again: str = "run the same again"
) -> Iterator[None]:
    """Say of a disk's error what was being written and what to do.

    Args:
        kept: what is not lost.
        again: what to do when the cause is mended.
    """
    try:
        yield
    except OSError as error:
        advice = _ADVICE.get(error.errno or 0, "mend that")
        raise OSError(
            error.errno,
            f"could not write {name} to {folder} ({error.strerror or error}); "
            f"{kept and kept + ': '}{advice} and {again}",
        ) from error
