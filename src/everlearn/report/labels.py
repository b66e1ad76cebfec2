"""Labels of runs: the method, and the settings in which its runs differ."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Setup(NamedTuple):
    """What a label is made from.

    Attributes:
        choices: settings by name.
        progress: how far an unfinished run came, else empty.
    """

    method: str
    choices: Mapping[str, Any]
    progress: str


def label_setups(setups: Sequence[Setup]) -> list[str]:
    """Give equal labels to equal setups, and different ones to others."""
    return [_label(setup, _differing(setup.method, setups)) for setup in setups]


def _differing(method: str, setups: Sequence[Setup]) -> list[str]:
    """Names of the settings that the runs of a method do not share."""
    alike = [setup.choices for setup in setups if setup.method == method]
    names = sorted({name for choices in alike for name in choices})
    return [name for name in names if len({_in_words(choices, name) for choices in alike}) > 1]


def _label(setup: Setup, names: Sequence[str]) -> str:
    parts = [f"{name.replace('_', ' ')} {_in_words(setup.choices, name)}" for name in names]
    words = ", ".join([setup.method, *parts]) + (f" ({setup.progress})" if setup.progress else "")
    # XML, and so SVG, cannot hold control characters.
    return "".join(letter if letter.isprintable() else "?" for letter in words)


def _in_words(choices: Mapping[str, Any], name: str) -> str:
    if name not in choices:
        return "not set"
    value = choices[name]
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, str):
        return value
    return "none" if value is None else json.dumps(value)
