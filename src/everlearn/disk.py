"""Files that are whole or not there."""

from __future__ import annotations

import os
from pathlib import Path


def write_file(path: Path, content: bytes) -> Path:
    """Write a file under another name and rename it, so that it is whole or not there."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_and_rename(temporary, path, content)
    except FileExistsError:
        raise NotADirectoryError(f"cannot write {path}: {path.parent} is not a folder") from None
    except OSError as error:
        raise OSError(error.errno, f"cannot write {path}: {error.strerror}") from None
    return path


def _write_and_rename(temporary: Path, path: Path, content: bytes) -> None:
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
