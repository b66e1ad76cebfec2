"""A stream of sprites as JSON and back."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from everlearn.core.validate import check_names
from everlearn.factors import (
    FACTOR_NAMES,
    Difference,
    Interval,
    Mixture,
    Product,
    Space,
    Values,
    ValueSet,
)
from everlearn.render.canvas import Canvas
from everlearn.shapes import ShapeStyle
from everlearn.stream.codec import decode, encode
from everlearn.stream.scenarios.incremental import find_scenario

if TYPE_CHECKING:
    from everlearn.stream.sprites.stream import Stream

KEY = "everlearn_stream"


def encode_stream(stream: Stream) -> str:
    """Write a stream as JSON."""
    names = [item.name for item in fields(stream)]
    return encode(KEY, {name: _encode_field(name, getattr(stream, name)) for name in names})


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


def decode_stream(text: str, allowed: Collection[str]) -> dict[str, Any]:
    """Read the fields of a stream from JSON, or say what is wrong with it."""
    settings = decode(text, KEY, allowed, "a stream")
    return {name: _decode_field(name, value) for name, value in settings.items()}


def _decode_field(name: str, value: Any) -> Any:
    if name == "canvas":
        return _build(Canvas, value, "canvas")
    if name == "style":
        return _build(ShapeStyle, value, "style")
    if name == "scenario":
        settings = dict(_object(value, "scenario"))
        scenario = settings.pop("name", None)
        if not isinstance(scenario, str):
            raise ValueError(f"scenario needs a name, found {scenario!r}")
        return find_scenario(scenario, settings)
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


def _build(settings_type: Any, value: Any, name: str) -> Any:
    settings = _object(value, name)
    check_names(settings, [item.name for item in fields(settings_type)], name)
    return settings_type(**{k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()})


def encode_space(space: Space) -> dict[str, Any]:
    """Write a space of factors as plain values."""
    if isinstance(space, Product):
        return {"product": {name: _encode_set(getattr(space, name)) for name in FACTOR_NAMES}}
    if isinstance(space, Difference):
        return {"minus": [encode_space(space.base), encode_space(space.excluded)]}
    if isinstance(space, Mixture):
        parts = [encode_space(part) for part in space.components]
        return {"mixture": {"parts": parts, "weights": list(space.weights)}}
    raise TypeError(
        f"only Product, Difference and Mixture can be written to a file, found {space!r}"
    )


def _encode_set(values: ValueSet) -> dict[str, Any]:
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
        return Difference(decode_space(content[0]), decode_space(content[1]))
    settings = _object(content, "mixture")
    if set(settings) != {"parts", "weights"} or not all(
        isinstance(v, list) for v in settings.values()
    ):
        raise ValueError(f"mixture needs lists of parts and weights, found {sorted(settings)}")
    return Mixture(tuple(decode_space(p) for p in settings["parts"]), tuple(settings["weights"]))


def _factors(content: Any) -> dict[str, Any]:
    settings = _object(content, "product")
    if set(settings) - set(FACTOR_NAMES):
        raise ValueError(f"unknown factors {sorted(settings)}; known: {', '.join(FACTOR_NAMES)}")
    return settings


def _decode_set(value: Any) -> ValueSet:
    kind, content = _single(value, "a set", ("values", "interval"))
    if not isinstance(content, list) or (kind == "interval" and len(content) != 2):
        raise ValueError(f"{kind} needs a list of numbers, found {content!r}")
    return Values(tuple(content)) if kind == "values" else Interval(*content)


def _single(value: Any, name: str, allowed: tuple[str, ...]) -> tuple[str, Any]:
    if not isinstance(value, dict) or len(value) != 1 or next(iter(value)) not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, found {value!r}")
    return next(iter(value.items()))
