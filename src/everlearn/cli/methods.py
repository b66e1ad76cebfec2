"""`everlearn methods`: list the methods, or show one and its settings."""

from __future__ import annotations

from typing import Annotated

import typer

from everlearn.cli.messages import print_message
from everlearn.cli.options import PLAN_OPTIONS, STREAM_OPTIONS, dashed
from everlearn.cli.values import format_value


def methods(
    name: Annotated[str, typer.Argument(metavar="[METHOD]", help="Show its settings.")] = "",
) -> None:
    """List the methods, or show one and its settings."""
    if name:
        _show(name)
    else:
        _list()


def _list() -> None:
    from everlearn.methods.registry import METHODS, group_methods

    for group, names in group_methods().items():
        _print([group, "what it is"], [[name, METHODS[name].summary] for name in names])
    print_message("settings of one: everlearn methods METHOD; to run it: everlearn run METHOD")


def _show(name: str) -> None:
    from everlearn.core.settings import describe_settings, list_settings
    from everlearn.methods.registry import find_method

    method = find_method(name)
    print_message(f"{name}: {method.summary}")
    print_message(f"paper: {method.paper or 'none'}")
    print_message(f"given: {method.supervision}")
    print_message(f"stores: {method.stores}")
    settings = method.settings()
    help_texts = describe_settings(settings)
    rows = [
        [option(name, setting, value), format_value(value), help_texts[setting]]
        for setting, value in list_settings(settings).items()
    ]
    _print(["option", "default", "what it is"], rows)
    print_message(f"presets change some of these; to run it: everlearn run {name} --preset small")


def option(method: str, setting: str, value: object) -> str:
    """Write a setting as it is typed, with its method's name where another option has the same one."""
    typed = dashed(setting)
    owner = f"{method}." if typed in STREAM_OPTIONS or typed in PLAN_OPTIONS else ""
    return f"--{owner}{typed}" + (f"/--{owner}no-{typed}" if isinstance(value, bool) else "")


def _print(head: list[str], rows: list[list[str]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(*head)
    for row in rows:
        table.add_row(*row)
    Console().print(table)
