"""The JSON of streams: one object, a format key that names the kind of stream, finite numbers only."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from everlearn.core.validate import check_names

FORMAT = 1


def encode(key: str, settings: Mapping[str, Any]) -> str:
    """Write settings as JSON under a format key."""
    return json.dumps({key: FORMAT, **settings}, indent=1)


def decode(text: str, key: str, allowed: Collection[str], owner: str) -> dict[str, Any]:
    """Read the settings behind a format key, or say what is wrong with them.

    Args:
        key: names the kind of stream; its value is the format number.
        allowed: the names that settings may have.
        owner: what the settings belong to, for error messages.
    """
    settings = read_object(text)
    if key not in settings:
        raise ValueError(
            f"a stream file of this kind needs the key {key!r}, found {_keys(settings)}"
        )
    version = settings.pop(key)
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise ValueError(f"{key} must be a format number of 1 or more, found {version!r}")
    if version > FORMAT:
        raise ValueError(
            f"this stream file has {key} {version}; this version of everlearn reads up to {FORMAT}: "
            "update everlearn"
        )
    check_names(settings, allowed, owner)
    return settings


def find_key(text: str, known: Collection[str]) -> str:
    """Return the format key of a stream's JSON, or say which keys are known."""
    settings = read_object(text)
    found = [key for key in known if key in settings]
    if len(found) != 1:
        raise ValueError(
            f"a stream file must have exactly one of the keys {', '.join(known)}, found "
            f"{_keys(settings)}; write the file with stream.to_json()"
        )
    return found[0]


def read_object(text: str) -> dict[str, Any]:
    """Read a JSON object of finite numbers that names every setting once."""
    try:
        data = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"a stream file must be JSON, found: {error}") from None
    if not isinstance(data, dict):
        raise ValueError(f"a stream file must be a JSON object, found {type(data).__name__}")
    return data


def _keys(settings: Mapping[str, Any]) -> str:
    return ", ".join(list(settings)[:8]) or "no keys"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"a stream file must name a setting once, found {[k for k, _ in pairs]}")
    return found


def _refuse_constant(name: str) -> float:
    raise ValueError(f"a stream file must hold finite numbers, found {name}")
