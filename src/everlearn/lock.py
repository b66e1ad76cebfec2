"""One writer a folder: a lock that the system lets go of when its process ends, however it ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from everlearn.disk import explained

LOCK = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, or say which process does."""
    path = folder / LOCK
    with explained(LOCK, folder):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _flock(descriptor, folder)
        _check_same(descriptor, path)
        yield from _hold(descriptor, path)
    finally:
        os.close(descriptor)


def _hold(descriptor: int, path: Path) -> Iterator[None]:
    """Keep this process's number in the file, and remove it at the end."""
    try:
        with explained(LOCK, path.parent):
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
            f"only Linux and macOS can write to {folder}; what they wrote reads anywhere"
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _refusal(folder, os.read(descriptor, 32).decode()) from None


def _check_same(descriptor: int, path: Path) -> None:
    """Refuse a file that its last holder removed between our opening and locking it."""
    if not path.exists() or not os.path.samestat(os.fstat(descriptor), path.stat()):
        raise _refusal(path.parent, "that just ended")


def _refusal(folder: Path, holder: str) -> BlockingIOError:
    return BlockingIOError(
        f"another writer holds {folder} (process {holder}); wait until it ends and run again, "
        "or give another folder"
    )
