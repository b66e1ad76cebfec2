"""One writer per folder: a lock that the system releases when its process ends, however it ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from everlearn.core.files import explain_write_errors

LOCK = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder; raise BlockingIOError if another process does."""
    path = folder / LOCK
    with explain_write_errors(LOCK, folder):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _flock(descriptor, folder)
        _check_not_deleted(descriptor, path)
        yield from _write_pid(descriptor, path)
    finally:
        os.close(descriptor)


def _write_pid(descriptor: int, path: Path) -> Iterator[None]:
    """Keep the process id in the lock file, and delete the file at the end."""
    try:
        with explain_write_errors(LOCK, path.parent):
            os.ftruncate(descriptor, 0)
            os.write(descriptor, str(os.getpid()).encode())
        yield
    finally:
        path.unlink(missing_ok=True)


def _flock(descriptor: int, folder: Path) -> None:
    try:
        import fcntl
    except ImportError as error:
        raise ImportError(
            f"writing to {folder} needs file locks of Linux or macOS; other systems can only read"
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _locked_error(folder, os.read(descriptor, 32).decode()) from None


def _check_not_deleted(descriptor: int, path: Path) -> None:
    """Raise if the last holder deleted the file between our opening and locking it."""
    if not path.exists() or not os.path.samestat(os.fstat(descriptor), path.stat()):
        raise _locked_error(path.parent, "that just ended")


def _locked_error(folder: Path, holder: str) -> BlockingIOError:
    return BlockingIOError(
        f"another writer holds {folder} (process {holder}); wait until it ends and run again, "
        "or give another folder"
    )
