"""Atomic writes: a file is complete or not there."""

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
    """Write a file atomically, in a folder that is created if missing; return its path."""
    with open_atomic(path) as file:
        file.write(content)
    return path


@contextmanager
def open_atomic(path: Path) -> Iterator[BinaryIO]:
    """Open a file for an atomic write, in a folder that is created if missing; errors name the file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replace_atomically(path) as file:
            yield file
    except FileExistsError:
        raise NotADirectoryError(f"cannot write {path}: {path.parent} is not a folder") from None
    except OSError as error:
        raise OSError(error.errno, f"cannot write {path}: {error.strerror}") from None


@contextmanager
def replace_atomically(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` once it is on the disk, and is deleted on an error."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        if os.name == "posix":  # Windows cannot sync a folder
            sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def sync(path: str | Path) -> None:
    """Flush a file, or the names in a folder, to the disk, so that they survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def explain_write_errors(
    name: str, folder: Path, kept: str = "", retry: str = "run the same command again"
) -> Iterator[None]:
    """Turn an OSError into one that says what could not be written and what to do.

    Args:
        kept: what is not lost, for the message.
        retry: what to do once the cause is removed, for the message.
    """
    try:
        yield
    except OSError as error:
        advice = _ADVICE.get(error.errno or 0, "fix the cause")
        raise OSError(
            error.errno,
            f"could not write {name} to {folder} ({error.strerror or error}); "
            f"{kept and kept + ': '}{advice} and {retry}",
        ) from error
