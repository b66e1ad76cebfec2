"""Remove the API key from everything that a server sends, however it is escaped there."""

from __future__ import annotations

import json
import re
from typing import Any

_MIN_SECRET = 8  # characters; shorter keys are placeholders of local servers


def hide(text: str, key: str) -> str:
    r"""Replace the key in a text by ***, also where it is escaped as in JSON: \u0073 for s, \/ for /."""
    # Local servers accept any key, such as "x"; replacing that would change their answers.
    if len(key) < _MIN_SECRET:
        return text
    return re.sub(_in_json(key), "***", text.replace(key, "***"))


def parse_json(data: str, key: str) -> Any:
    """Parse JSON and replace the key in every text of it; raise if it is not JSON."""
    try:
        return _without(json.loads(data), key)
    except (ValueError, RecursionError):
        raise ValueError("the text is not JSON") from None


def _without(value: Any, key: str) -> Any:
    if isinstance(value, str):
        return hide(value, key)
    if isinstance(value, list):
        return [_without(one, key) for one in value]
    if isinstance(value, dict):
        return {hide(name, key): _without(one, key) for name, one in value.items()}
    return value


def _in_json(key: str) -> str:
    # The alternatives exclude each other, so the search is linear.
    ways = ((re.escape(json.dumps(c)[1:-1]), f"{ord(c):04x}") for c in key)
    return "".join(rf"(?:{way}|\\u(?i:{code}))" for way, code in ways).replace("/", r"\\?/")
