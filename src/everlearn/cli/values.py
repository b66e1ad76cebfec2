"""Settings as they are typed: their types, and text read as a value of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

_YES, _NO = ("yes", "true", "on", "1"), ("no", "false", "off", "0")
_READERS: dict[Any, tuple[str, Callable[[str], Any]]] = {
    int: ("a whole number", int),
    float: ("a number", float),
    str: ("a word", str),
}


def list_types(settings: Any) -> dict[str, Any]:
    """The type of every setting by its name; those of a group within stand beside the others."""
    hints = get_type_hints(type(settings))
    out: dict[str, Any] = {}
    for item in fields(settings):
        value = getattr(settings, item.name)
        out |= list_types(value) if is_dataclass(value) else {item.name: hints[item.name]}
    return out


def parse_value(text: str, kind: Any, option: str) -> Any:
    """Read text as a value of a type: a number, a word, yes or no, several with commas, none."""
    if not isinstance(text, str):
        return text
    types, text = get_args(kind) or (kind,), text.strip()
    if text.lower() == "none" and (NoneType in types or get_origin(kind) is tuple):
        return () if get_origin(kind) is tuple else None
    if get_origin(kind) is tuple:
        return tuple(parse_value(part, types[0], option) for part in text.split(","))
    more = " or none" if NoneType in types else ""
    return _read_one(text, types[0], option, more)


def format_value(value: Any) -> str:
    """A value as it is typed."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (tuple, list)):
        return ",".join(map(format_value, value)) or "none"
    return "none" if value is None else str(value)


def _read_one(text: str, kind: Any, option: str, more: str) -> Any:
    if kind is bool:
        if text.lower() not in (*_YES, *_NO):
            raise ValueError(f"{option} must be yes or no{more}, found {text!r}")
        return text.lower() in _YES
    expected, read = _READERS[kind]
    try:
        return read(text)
    except ValueError:
        raise ValueError(f"{option} must be {expected}{more}, found {text!r}") from None
