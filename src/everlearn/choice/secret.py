"""A key that a server may quote: taken out of what it sends, however it is spelled there."""

from __future__ import annotations

import json
import re
from typing import Any

_SECRET = 8  # characters of a key that is worth hiding


def hide(words: str, key: str) -> str:
    r"""Take the key out of a text, where it may stand as in JSON: \u0073 for s, \/ for /."""
    # Local servers take any key, such as "x"; to take that out would change what they say.
    if len(key) < _SECRET:
        return words
    return re.sub(_in_json(key), "***", words.replace(key, "***"))


def decode(data: str, key: str) -> Any:
    """Read JSON and take the key out of every text in it, or say that it is none."""
    try:
        return _without(json.loads(data), key)
    except (ValueError, RecursionError):
        raise ValueError("the text is no JSON") from None


def _without(value: Any, key: str) -> Any:
    if isinstance(value, str):
        return hide(value, key)
    if isinstance(value, list):
        return [_without(one, key) for one in value]
    if isinstance(value, dict):
        return {hide(name, key): _without(one, key) for name, one in value.items()}
    return value


def _in_json(key: str) -> str:
    # No two ways to read a character, so that no text takes long to search.
    ways = ((re.escape(json.dumps(c)[1:-1]), f"{ord(c):04x}") for c in key)
    return "".join(rf"(?:{way}|\\u(?i:{code}))" for way, code in ways).replace("/", r"\\?/")
