"""Labels of runs: the method, and the settings in which its runs differ."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Setup(NamedTuple):
    """The parts of a label.

    Attributes:
        choices: settings by name.
        progress: of an unfinished run, such as "2 of 3 tasks"; else empty.
    """

    method: str
    choices: Mapping[str, Any]
    progress: str


def label_setups(setups: Sequence[Setup]) -> list[str]:
    """Return one label per setup: equal for equal setups, different otherwise."""
    return [_label(setup, _differing(setup.method, setups)) for setup in setups]


def _differing(method: str, setups: Sequence[Setup]) -> list[str]:
    """Return the names of the settings in which the runs of a method differ."""
    same_method = [setup.choices for setup in setups if setup.method == method]
    names = sorted({name for choices in same_method for name in choices})
    return [name for name in names if len({_value(choices, name) for choices in same_method}) > 1]


def _label(setup: Setup, names: Sequence[str]) -> str:
    parts = [f"{name.replace('_', ' ')} {_value(setup.choices, name)}" for name in names]
    label = ", ".join([setup.method, *parts]) + (f" ({setup.progress})" if setup.progress else "")
    # XML, and so SVG, cannot hold control characters.
    return "".join(letter if letter.isprintable() else "?" for letter in label)


def _value(choices: Mapping[str, Any], name: str) -> str:
    if name not in choices:
        return "not set"
    value = choices[name]
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, str):
        return value
    return "none" if value is None else json.dumps(value)
