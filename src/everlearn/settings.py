"""Settings of a method: frozen dataclasses, with what each is for, changed by name."""

from __future__ import annotations

from dataclasses import field, fields, is_dataclass, replace
from typing import Any

from everlearn.border import check_names


def setting(default: Any, words: str) -> Any:
    """A field of settings, with what it is for."""
    return field(default=default, metadata={"help": words})


def list_settings(settings: Any) -> dict[str, Any]:
    """Every setting by its name; those of a group within stand beside the others."""
    out: dict[str, Any] = {}
    for item in fields(settings):
        value = getattr(settings, item.name)
        out |= list_settings(value) if is_dataclass(value) else {item.name: value}
    return out


def describe_settings(settings: Any) -> dict[str, str]:
    """What every setting is for."""
    out: dict[str, str] = {}
    for item in fields(settings):
        value = getattr(settings, item.name)
        words = {item.name: item.metadata.get("help", "")}
        out |= describe_settings(value) if is_dataclass(value) else words
    return out


def change_settings(settings: Any, changes: dict[str, Any], owner: str) -> Any:
    """The same settings but for some, or an error that lists the known names."""
    check_names(changes, list_settings(settings), owner)
    return _change(settings, changes)


def _change(settings: Any, changes: dict[str, Any]) -> Any:
    new = {}
    for item in fields(settings):
        value = getattr(settings, item.name)
        if is_dataclass(value):
            new[item.name] = _change(value, changes)
        elif item.name in changes:
            new[item.name] = changes[item.name]
            if isinstance(value, bool) and not isinstance(new[item.name], bool):
                raise TypeError(f"{item.name} must be True or False, found {new[item.name]!r}")
    return replace(settings, **new)
