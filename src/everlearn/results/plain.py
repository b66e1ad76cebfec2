"""Plain values: what JSON holds and gives back unchanged."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def plain(value: Any, name: str, finite: bool = True) -> Any:
    """Make a value plain: numbers of numpy become Python's, tuples lists; refuse all else.

    Args:
        finite: whether to refuse numbers that are infinite or none.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and finite and not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, found {value}; leave it out or use None")
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(item, f"{name}/{place}", finite) for place, item in enumerate(value)]
    if isinstance(value, dict):
        return {check_key(k, name): plain(v, f"{name}/{k}", finite) for k, v in value.items()}
    raise TypeError(
        f"{name} must be None, a bool, a number, text, or a list or dict of those, "
        f"found {type(value).__name__}"
    )


def check_key(key: Any, name: str) -> str:
    """Return a key of a dict that is text, or say that it is not."""
    if not isinstance(key, str):
        raise TypeError(f"the keys of {name} must be text, found {key!r}")
    return key
