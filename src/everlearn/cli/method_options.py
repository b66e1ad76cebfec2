"""Methods and their settings as they are typed: `dcl joint --lr 0.01 --joint.retrain-every 5`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from everlearn.cli.options import dashed
from everlearn.cli.values import list_types, parse_value
from everlearn.core.settings import find_name

SettingTypes = dict[str, dict[str, Any]]


class MethodOption(NamedTuple):
    """A setting that was typed.

    Attributes:
        owner: the method it is for; empty for every method that has the setting.
    """

    typed: str
    owner: str
    name: str
    text: str


def parse_methods(
    arguments: Sequence[str], default: Sequence[str] = ()
) -> dict[str, dict[str, Any]]:
    """Return the settings to change, by method.

    A setting without a method's name is for every method that has it.

    Args:
        default: the methods when none is typed.
    """
    from everlearn.methods import METHODS

    types = {name: list_types(method.settings()) for name, method in METHODS.items()}
    names, options = _split(arguments, types)
    chosen = {name: types[name] for name in names or default}
    if not chosen:
        raise ValueError(f"name a method; known: {', '.join(METHODS)}")
    for option in options:
        _check_owner(option, chosen)
    return {name: _changes(options, name, of_method) for name, of_method in chosen.items()}


def _split(arguments: Iterable[str], types: SettingTypes) -> tuple[list[str], list[MethodOption]]:
    """Separate names of methods from settings, each with the value that follows it."""
    from everlearn.methods import find_method

    remaining = iter(arguments)
    names: list[str] = []
    options: list[MethodOption] = []
    for argument in remaining:
        if argument.startswith("-"):
            options.append(_parse_option(argument, remaining, types, names))
        else:
            find_method(argument)
            names.append(argument)
    return names, options


def _parse_option(
    argument: str, remaining: Iterator[str], types: SettingTypes, names: Sequence[str]
) -> MethodOption:
    typed, equals, text = argument.partition("=")
    owner, _, name = typed.lstrip("-").rpartition(".")
    chosen = {method: types[method] for method in types if method in names} or types
    name = _find(name, chosen, types)
    if not equals and name.removeprefix("no_") in _flags(types):
        text = "no" if name.startswith("no_") else "yes"
        return MethodOption(typed, owner, name.removeprefix("no_"), text)
    if not any(name in of_method for of_method in types.values()):
        raise _unknown(typed, chosen)
    return MethodOption(typed, owner, name, text if equals else _value_after(remaining, typed))


def _find(name: str, chosen: SettingTypes, types: SettingTypes) -> str:
    """Return the name of a setting as the code has it; refuse an old name with the new one."""
    name = name.replace("-", "_")
    negated = "no_" if name.startswith("no_") else ""
    for candidates in (chosen, types):
        known = {setting for of_method in candidates.values() for setting in of_method}
        found = find_name(name.removeprefix(negated), known, lambda name: f"--{dashed(name)}")
        if found in known:
            return negated + found
    return name


def _flags(types: SettingTypes) -> set[str]:
    return {
        name for of_method in types.values() for name, kind in of_method.items() if kind is bool
    }


def _value_after(remaining: Iterator[str], typed: str) -> str:
    text = next(remaining, None)
    if text is None:
        raise ValueError(f"{typed} needs a value after it")
    return text


def _check_owner(option: MethodOption, chosen: SettingTypes) -> None:
    if option.owner and option.owner not in chosen:
        raise ValueError(
            f"{option.typed} is for the method {option.owner!r}; these learn: {', '.join(chosen)}"
        )
    owners = {option.owner: chosen[option.owner]} if option.owner else chosen
    if not any(option.name in of_method for of_method in owners.values()):
        raise _unknown(option.typed, owners)


def _unknown(typed: str, types: SettingTypes) -> ValueError:
    settings = sorted({setting for of_method in types.values() for setting in of_method})
    options = ", ".join(f"--{dashed(setting)}" for setting in settings)
    return ValueError(
        f"unknown option {typed}; settings of {', '.join(types)}: {options}; "
        "for other options see --help"
    )


def _changes(options: Sequence[MethodOption], method: str, types: dict[str, Any]) -> dict[str, Any]:
    return {
        option.name: parse_value(option.text, types[option.name], option.typed)
        for option in options
        if option.owner in ("", method) and option.name in types
    }
