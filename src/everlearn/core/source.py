"""Which source this package runs from: its commit, whether it differs from that commit, and its digest."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1]
STAMP = PACKAGE / "core" / "build_stamp.json"
_CACHES = {".pyc", ".nbi", ".nbc"}


@cache
def describe_source() -> dict[str, Any]:
    """Return `commit`, `dirty` and `source_digest`; what is unknown is None.

    They are those of the first call: a later commit is not what this process runs. A build stamp beside
    this file with the same digest names the commit of a copy whose git metadata are missing or of another
    commit. Otherwise commit and dirty come from git, then from an outdated stamp.
    """
    commit, dirty = stamped = _stamped_commit()
    if dirty is not False:
        commit, dirty = git_commit()
    if commit is None:
        commit, dirty = stamped
    if commit is None:
        commit = _installed_commit()
    return {"commit": commit, "dirty": dirty, "source_digest": source_digest()}


@cache
def source_digest() -> str:
    """Return the SHA-256 of the relative paths and contents of the package's files, without caches."""
    digest = hashlib.sha256()
    for name, path in sorted(_source_files()):
        content = path.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def git_commit() -> tuple[str | None, bool | None]:
    """Return the commit of this package's source, and whether the source differs from it."""
    # A package installed inside another project's repository is not part of it.
    if _git("ls-files", "--error-unmatch", "__init__.py") is None:
        return None, None
    return _git("rev-parse", "HEAD"), bool(_git("status", "--porcelain", "--", "."))


def _stamped_commit() -> tuple[str | None, bool | None]:
    """Return the commit of the build stamp, and whether the source has changed since it was written."""
    if not STAMP.exists():
        return None, None
    try:
        stamp = json.loads(STAMP.read_bytes())
        return stamp["commit"], stamp["source_digest"] != source_digest()
    except (ValueError, TypeError, KeyError):
        raise ValueError(
            f"{STAMP} is damaged: it must hold commit and source_digest; remove it, or write it again with "
            "python -m everlearn.core.stamp"
        ) from None


def _installed_commit() -> str | None:
    """Return the commit that pip installed this package from, if it came from a repository."""
    try:
        installed = distribution("everlearn")
    except PackageNotFoundError:
        return None
    origin = json.loads(installed.read_text("direct_url.json") or "{}")
    # Another copy of the package may be the one in use.
    is_this = Path(str(installed.locate_file("everlearn"))).resolve() == PACKAGE
    return origin.get("vcs_info", {}).get("commit_id") if is_this else None


def _source_files() -> Iterator[tuple[str, Path]]:
    for path in PACKAGE.rglob("*"):
        hidden = any(part.startswith(".") for part in path.relative_to(PACKAGE).parts)
        if path.suffix not in _CACHES and not hidden and path != STAMP and path.is_file():
            yield path.relative_to(PACKAGE).as_posix(), path


def _git(*arguments: str) -> str | None:
    command = ["git", "-C", str(PACKAGE), *arguments]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return result.stdout.strip()
