"""A stream as JSON and back. The format has a number; a newer one is refused."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from everlearn.border import check_names
from everlearn.factors import NAMES, Interval, Minus, Mixture, Product, Set, Space, Values
from everlearn.render.canvas import Canvas
from everlearn.shapes import ShapeStyle
from everlearn.stream.scenarios import find_scenario

if TYPE_CHECKING:
    from everlearn.stream.spec import Stream

FORMAT = 1
_KEY = "everlearn_stream"


def encode(stream: Stream) -> str:
    """Write a stream as JSON."""
    out: dict[str, Any] = {_KEY: FORMAT}
    for item in fields(stream):
        out[item.name] = _encode_field(item.name, getattr(stream, item.name))
    return json.dumps(out, indent=1)


def _encode_field(name: str, value: Any) -> Any:
    if name == "canvas":
        return value.to_dict()
    if name == "scenario":
        return {"name": value.name, **asdict(value)}
    if name == "style":
        return asdict(value)
    if name in ("factors", "test_factors", "held_out"):
        return None if value is None else encode_space(value)
    return list(value) if isinstance(value, tuple) else value


def decode(text: str) -> dict[str, Any]:
    """Read the fields of a stream from JSON, or say what is wrong with it."""
    data = read_object(text, _KEY)
    version = data.pop(_KEY)
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise ValueError(f"{_KEY} must be a format number of 1 or more, found {version!r}")
    if version > FORMAT:
        raise ValueError(
            f"this stream file has format {version}; this version of everlearn reads up to {FORMAT}: "
            "update everlearn"
        )
    return {name: _decode_field(name, value) for name, value in data.items()}


def read_settings(
    text: str, key: str, number: int, allowed: Collection[str], owner: str
) -> dict[str, Any]:
    """Read the settings of a file with one format, or say what is wrong with it.

    Args:
        key: names the kind of file; its value is the number of the format.
        owner: what the settings are of.
    """
    settings = read_object(text, key)
    version = settings.pop(key)
    if version != number or isinstance(version, bool):
        raise ValueError(
            f"{key} must be {number}, found {version!r}; a newer everlearn may read it"
        )
    check_names(settings, allowed, owner)
    return settings


def read_object(text: str, key: str) -> dict[str, Any]:
    """Read a JSON object of finite numbers that names each setting once, `key` among them."""
    try:
        data = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_twins)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"a stream file must be JSON, found: {error}") from None
    if not isinstance(data, dict) or key not in data:
        raise ValueError(f"a stream file must be a JSON object with the key {key!r}")
    return data


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"a stream file must name a setting once, found {[k for k, _ in pairs]}")
    return found


def _no_constant(name: str) -> float:
    raise ValueError(f"a stream file must hold finite numbers, found {name}")


def _decode_field(name: str, value: Any) -> Any:
    if name == "canvas":
        return _build(Canvas, value, "canvas")
    if name == "style":
        return _build(ShapeStyle, value, "style")
    if name == "scenario":
        settings = dict(_object(value, "scenario"))
        kind = settings.pop("name", None)
        if not isinstance(kind, str):
            raise ValueError(f"scenario needs a name, found {kind!r}")
        return find_scenario(kind, settings)
    if name in ("factors", "test_factors", "held_out"):
        return None if value is None else _decode_deep(value, name)
    return tuple(value) if isinstance(value, list) else value


def _decode_deep(value: Any, name: str) -> Space:
    try:
        return decode_space(value)
    except RecursionError:
        raise ValueError(f"{name} is nested too deeply") from None


def _object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{name} must be a JSON object, found {value!r}")
    return value


def _build(kind: Any, value: Any, name: str) -> Any:
    settings = _object(value, name)
    check_names(settings, [item.name for item in fields(kind)], name)
    return kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()})


def encode_space(space: Space) -> dict[str, Any]:
    """Write a space of factors as plain values."""
    if isinstance(space, Product):
        return {"product": {name: _encode_set(getattr(space, name)) for name in NAMES}}
    if isinstance(space, Minus):
        return {"minus": [encode_space(space.whole), encode_space(space.hole)]}
    if isinstance(space, Mixture):
        parts = [encode_space(part) for part in space.parts]
        return {"mixture": {"parts": parts, "weights": list(space.weights)}}
    raise TypeError(f"only Product, Minus and Mixture can be written to a file, found {space!r}")


def _encode_set(values: Set) -> dict[str, Any]:
    if isinstance(values, Values):
        return {"values": list(values.values)}
    if isinstance(values, Interval):
        return {"interval": [values.low, values.high]}
    raise TypeError(f"only Values and Interval can be written to a file, found {values!r}")


def decode_space(value: Any) -> Space:
    """Read a space of factors from plain values."""
    kind, content = _single(value, "a space", ("product", "minus", "mixture"))
    if kind == "product":
        return Product(**{k: _decode_set(v) for k, v in _factors(content).items()})
    if kind == "minus":
        if not isinstance(content, list) or len(content) != 2:
            raise ValueError(f"minus needs two spaces, found {content!r}")
        return Minus(decode_space(content[0]), decode_space(content[1]))
    settings = _object(content, "mixture")
    if set(settings) != {"parts", "weights"} or not all(
        isinstance(v, list) for v in settings.values()
    ):
        raise ValueError(f"mixture needs lists of parts and weights, found {sorted(settings)}")
    return Mixture(tuple(decode_space(p) for p in settings["parts"]), tuple(settings["weights"]))


def _factors(content: Any) -> dict[str, Any]:
    settings = _object(content, "product")
    if set(settings) - set(NAMES):
        raise ValueError(f"unknown factors {sorted(settings)}; known: {', '.join(NAMES)}")
    return settings


def _decode_set(value: Any) -> Set:
    kind, content = _single(value, "a set", ("values", "interval"))
    if not isinstance(content, list) or (kind == "interval" and len(content) != 2):
        raise ValueError(f"{kind} needs a list of numbers, found {content!r}")
    return Values(tuple(content)) if kind == "values" else Interval(*content)


def _single(value: Any, name: str, kinds: tuple[str, ...]) -> tuple[str, Any]:
    if not isinstance(value, dict) or len(value) != 1 or next(iter(value)) not in kinds:
        raise ValueError(f"{name} must be one of {', '.join(kinds)}, found {value!r}")
    return next(iter(value.items()))
