"""Validation of arguments: an error says what was found and what is allowed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np


def check_int(value: Any, name: str, low: int, high: int, note: str = "") -> int:
    """Return an integer from low to high, or raise."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be a whole number{note}, found {value!r}")
    if not low <= value <= high:
        raise ValueError(f"{name} must lie in {low} .. {high}{note}, found {value}")
    return int(value)


def check_number(value: Any, name: str, low: float, high: float, note: str = "") -> float:
    """Return a finite number from low to high, or raise."""
    _check_is_number(value, name, note)
    if not (low <= value <= high and math.isfinite(value)):
        raise ValueError(f"{name} must lie in {low} .. {high}{note}, found {value}")
    return float(value)


def check_finite(value: Any, name: str) -> float:
    """Return a finite number, or raise."""
    _check_is_number(value, name)
    if not math.isfinite(value):
        raise ValueError(f"{name} must be finite, found {value}")
    return float(value)


def check_names(settings: Iterable[str], allowed: Iterable[str], owner: str) -> None:
    """Raise if a setting has a name that its owner does not have."""
    unknown = sorted(set(settings) - set(allowed))
    if unknown:
        known = sorted(allowed) or "none"
        raise ValueError(f"unknown settings {unknown} of {owner}; allowed: {known}")


def _check_is_number(value: Any, name: str, note: str = "") -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise TypeError(f"{name} must be a number{note}, found {value!r}")
