"""Methods and their settings as they are typed: `dcl joint --rate 0.01 --no-fresh --joint.every 5`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from everlearn.cli.options import dashed
from everlearn.cli.values import list_kinds, read_value

Kinds = dict[str, dict[str, Any]]


class Option(NamedTuple):
    """A setting that was typed.

    Attributes:
        owner: the method it is for; empty for all that have it.
    """

    typed: str
    owner: str
    name: str
    text: str


def read_words(words: Sequence[str], usual: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """Settings to change, by method; a setting without a method's name is for all that have it.

    Args:
        usual: the methods when none is typed.
    """
    from everlearn.methods import METHODS

    every = {name: list_kinds(method.settings()) for name, method in METHODS.items()}
    names, options = _split(words, every)
    known = {name: every[name] for name in names or usual}
    if not known:
        raise ValueError(f"name a method; known: {', '.join(METHODS)}")
    for option in options:
        _check_owned(option, known)
    return {name: _changes(options, name, kinds) for name, kinds in known.items()}


def _split(words: Iterable[str], every: Kinds) -> tuple[list[str], list[Option]]:
    """Tell names of methods from settings, each with the value that follows it."""
    from everlearn.methods import find_method

    left, options = iter(words), []
    names: list[str] = []
    for word in left:
        if word.startswith("-"):
            options.append(_read_option(word, left, every, names))
        else:
            find_method(word)
            names.append(word)
    return names, options


def _read_option(word: str, left: Iterator[str], every: Kinds, names: Sequence[str]) -> Option:
    typed, equals, text = word.partition("=")
    owner, _, name = typed.lstrip("-").rpartition(".")
    name = name.replace("-", "_")
    if not equals and name.removeprefix("no_") in _flags(every):
        text = "no" if name.startswith("no_") else "yes"
        return Option(typed, owner, name.removeprefix("no_"), text)
    if not any(name in kinds for kinds in every.values()):
        known = {method: kinds for method, kinds in every.items() if method in names}
        raise _refusal(typed, known or every)
    return Option(typed, owner, name, text if equals else _follow(left, typed))


def _flags(every: Kinds) -> set[str]:
    return {name for kinds in every.values() for name, kind in kinds.items() if kind is bool}


def _follow(left: Iterator[str], typed: str) -> str:
    text = next(left, None)
    if text is None:
        raise ValueError(f"{typed} needs a value after it")
    return text


def _check_owned(option: Option, known: Kinds) -> None:
    if option.owner and option.owner not in known:
        raise ValueError(
            f"{option.typed} is for the method {option.owner!r}; these learn: {', '.join(known)}"
        )
    asked = {option.owner: known[option.owner]} if option.owner else known
    if not any(option.name in kinds for kinds in asked.values()):
        raise _refusal(option.typed, asked)


def _refusal(typed: str, known: Kinds) -> ValueError:
    settings = sorted({f"--{dashed(name)}" for kinds in known.values() for name in kinds})
    return ValueError(
        f"unknown option {typed}; settings of {', '.join(known)}: {', '.join(settings)}; "
        "for other options see --help"
    )


def _changes(options: Sequence[Option], method: str, kinds: dict[str, Any]) -> dict[str, Any]:
    return {
        option.name: read_value(option.text, kinds[option.name], option.typed)
        for option in options
        if option.owner in ("", method) and option.name in kinds
    }
