"""Compile with numba, with a cache on disk where the package folder is writable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numba


def jit(function: Callable[..., Any], inline: Literal["never", "always"] = "never") -> Any:
    """Compile a function without Python objects, cached on disk if possible."""
    try:
        return numba.njit(function, nogil=True, cache=True, inline=inline)
    except RuntimeError:  # numba found no writable cache folder
        return numba.njit(function, nogil=True, inline=inline)
