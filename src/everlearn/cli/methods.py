"""`everlearn methods`: the methods there are, and the settings of each."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from everlearn.cli.options import CHOICES, EXAMS, dashed
from everlearn.cli.say import tell
from everlearn.cli.values import write_value


def methods(
    name: Annotated[str, typer.Argument(metavar="[METHOD]", help="Show its settings.")] = "",
) -> None:
    """List the methods, or the settings of one."""
    if name:
        _show(name)
    else:
        _list()


def _list() -> None:
    from everlearn.methods import METHODS

    _print(["method", "what it is"], [[name, method.words] for name, method in METHODS.items()])
    tell("settings of one: everlearn methods METHOD; to run it: everlearn run METHOD")


def _show(name: str) -> None:
    from everlearn.methods import find_method
    from everlearn.settings import describe_settings, list_settings

    method = find_method(name)
    tell(f"{name}: {method.words}")
    settings, words = list_settings(method.settings()), describe_settings(method.settings())
    rows = [
        [option(name, *item), write_value(item[1]), words[item[0]]] for item in settings.items()
    ]
    _print(["option", "usually", "what it is"], rows)
    tell(f"presets change some of these; to run it: everlearn run {name} --preset small")


def option(method: str, setting: str, value: Any) -> str:
    """How a setting is typed: with its method's name where another option has taken the name."""
    typed = dashed(setting)
    owner = f"{method}." if typed in CHOICES or typed in EXAMS else ""
    return f"--{owner}{typed}" + (f"/--{owner}no-{typed}" if isinstance(value, bool) else "")


def _print(head: list[str], rows: list[list[str]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(*head)
    for row in rows:
        table.add_row(*row)
    Console().print(table)
