"""Compile with numba, kept on disk where that can be written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numba


def jit(function: Callable[..., Any], inline: Literal["never", "always"] = "never") -> Any:
    """Compile a function that needs no Python objects; an install that cannot be written still works."""
    try:
        return numba.njit(function, nogil=True, cache=True, inline=inline)
    except RuntimeError:  # numba found no folder to write to
        return numba.njit(function, nogil=True, inline=inline)
