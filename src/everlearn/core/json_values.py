"""Conversion to JSON values, and parsing of JSON objects with one clear line for a damaged file."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np


def to_json_value(value: Any, name: str, finite: bool = True) -> Any:
    """Convert numpy numbers to Python's and tuples to lists; raise for what JSON cannot hold.

    Args:
        name: what the value is called in error messages.
        finite: refuse NaN and infinities.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and finite and not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, found {value}; leave it out or use None")
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [to_json_value(item, f"{name}/{place}", finite) for place, item in enumerate(value)]
    if isinstance(value, dict):
        return {
            check_key(k, name): to_json_value(v, f"{name}/{k}", finite) for k, v in value.items()
        }
    raise TypeError(
        f"{name} must be None, a bool, a number, text, or a list or dict of those, "
        f"found {type(value).__name__}"
    )


def check_key(key: Any, name: str) -> str:
    """Return a key of a dict; raise if it is not text."""
    if not isinstance(key, str):
        raise TypeError(f"the keys of {name} must be text, found {key!r}")
    return key


def read_text(path: Path) -> str:
    """Read a UTF-8 file; raise ValueError if it is damaged."""
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is damaged: {error}; put back a copy of it") from None


def parse_object(text: str, name: str, advice: str = "put back a copy of it") -> dict[str, Any]:
    """Parse a JSON object; raise ValueError if the text holds anything else."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{name} is not JSON: {error}; {advice}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{name} must be a JSON object, found {type(value).__name__}; {advice}")
    return value
