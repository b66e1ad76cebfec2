"""Checks at the border: what was found, what is allowed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np


def check_whole(value: Any, name: str, low: int, high: int, more: str = "") -> int:
    """Return a whole number from low to high, or say what is allowed."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be a whole number{more}, found {value!r}")
    if not low <= value <= high:
        raise ValueError(f"{name} must lie in {low} .. {high}{more}, found {value}")
    return int(value)


def check_number(value: Any, name: str, low: float, high: float, more: str = "") -> float:
    """Return a finite number from low to high, or say what is allowed."""
    _check_kind(value, name, more)
    if not (low <= value <= high and math.isfinite(value)):
        raise ValueError(f"{name} must lie in {low} .. {high}{more}, found {value}")
    return float(value)


def check_finite(value: Any, name: str) -> float:
    """Return a finite number, or say that it is none."""
    _check_kind(value, name)
    if not math.isfinite(value):
        raise ValueError(f"{name} must be finite, found {value}")
    return float(value)


def check_names(settings: Iterable[str], allowed: Iterable[str], owner: str) -> None:
    """Raise where settings have a name that their owner does not know."""
    unknown = sorted(set(settings) - set(allowed))
    if unknown:
        known = sorted(allowed) or "none"
        raise ValueError(f"unknown settings {unknown} of {owner}; allowed: {known}")


def _check_kind(value: Any, name: str, more: str = "") -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise TypeError(f"{name} must be a number{more}, found {value!r}")
