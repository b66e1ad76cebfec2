"""Provenance of results: versions, machine, commit and command."""

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

from everlearn.core.version import __version__

_SOURCE = Path(__file__).resolve().parents[1]
_PACKAGES = ("numpy", "torch", "numba", "triton")


def provenance(gpu: str | None = None) -> dict[str, Any]:
    """Describe this process and its machine; what is unknown or not installed is None.

    The environment variable EVERLEARN_COMMIT names the commit of a source tree without git metadata.

    Args:
        gpu: name of the GPU in use; looking it up would import torch.
    """
    given_commit = os.environ.get("EVERLEARN_COMMIT")
    commit, dirty = (given_commit, None) if given_commit else _commit()
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
    """Return the commit of this package's source, and whether the source differs from it."""
    # A package installed inside another project's repository is not part of it.
    if _git("ls-files", "--error-unmatch", "__init__.py") is None:
        return None, None
    changed = _git("status", "--porcelain", "--untracked-files=no")
    new = _git("status", "--porcelain", "--", ".")
    return _git("rev-parse", "HEAD"), bool(changed or new)


def _git(*arguments: str) -> str | None:
    command = ["git", "-C", str(_SOURCE), *arguments]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return result.stdout.strip()


def _command() -> str:
    """Return the command line of this process, without the path of a script installed next to Python."""
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
