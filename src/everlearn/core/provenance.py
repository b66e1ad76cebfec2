"""Provenance of results: source, command, versions and machine."""

from __future__ import annotations

import os
import platform
import shlex
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from everlearn.core.source import describe_source
from everlearn.core.version import __version__

_PACKAGES = ("numpy", "torch", "numba", "triton")


def provenance(gpu: str | None = None) -> dict[str, Any]:
    """Describe this process, its source and its machine; what is unknown or not installed is None.

    Args:
        gpu: name of the GPU in use; looking it up would import torch.
    """
    return {
        **describe_source(),
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
