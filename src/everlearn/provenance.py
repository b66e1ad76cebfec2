"""What a number depends on: versions, machine, commit, command."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from everlearn.version import __version__

_SOURCE = Path(__file__).resolve().parent
_PACKAGES = ("numpy", "torch", "numba", "triton")


def provenance(gpu: str | None = None) -> dict[str, Any]:
    """Describe this process and its machine; what is not known or not installed is None.

    EVERLEARN_COMMIT names the commit of a copy of the source that git does not know as such.

    Args:
        gpu: the name of the card that computes; asking it takes torch, which is not loaded here.
    """
    told = os.environ.get("EVERLEARN_COMMIT")
    commit, dirty = (told, None) if told else _commit()
    return {
        "commit": commit,
        "dirty": dirty,
        "command": _command(),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "python": platform.python_version(),
        "everlearn": __version__,
        **{name: _version(name) for name in _PACKAGES},
        "cpu": _cpu_name(),
        "cores": os.cpu_count(),
        "gpu": gpu,
        "platform": platform.platform(),
    }


def _commit() -> tuple[str | None, bool | None]:
    """The commit of this package's source, and whether the source differs from it."""
    # A package installed below somebody's repository is not part of it.
    if _git("ls-files", "--error-unmatch", "__init__.py") is None:
        return None, None
    changed = _git("status", "--porcelain", "--untracked-files=no")
    new = _git("status", "--porcelain", "--", ".")
    return _git("rev-parse", "HEAD"), bool(changed or new)


def _git(*words: str) -> str | None:
    command = ["git", "-C", str(_SOURCE), *words]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return ended.stdout.strip()


def _command() -> str:
    """The words that started this process; a script installed beside Python goes by its name."""
    script = Path(sys.argv[0])
    if script.parent == Path(sys.executable).parent:
        return shlex.join([script.name, *sys.argv[1:]])
    return shlex.join(["python", *sys.orig_argv[1:]])


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
