"""Markdown tables and the text of their cells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from everlearn.report import Table

_CODE_OR_ASTERISK = re.compile(r"`[^`]*`|\*")


def table(head: Sequence[str], *rows: Sequence[str]) -> str:
    """Return a Markdown table; asterisks outside code are not emphasis."""
    shown = [[_escape(cell) for cell in row] for row in (head, *rows)]
    lines = [f"| {' | '.join(row)} |".replace("|  |", "| |") for row in shown]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])


def _escape(cell: str) -> str:
    return _CODE_OR_ASTERISK.sub(lambda found: r"\*" if found[0] == "*" else found[0], cell)


def by_method(found: Table) -> dict[str, dict[str, str]]:
    """Return the cells of a table by method and column."""
    lines = (dict(zip(found.head, row, strict=True)) for row in found.rows)
    return {line["method"]: line for line in lines}


def name_seeds(seeds: Sequence[int]) -> str:
    """Return "seed 10", "seeds 11 and 12" or "seeds 10, 11 and 12"."""
    *others, last = map(str, seeds)
    return f"seeds {', '.join(others)} and {last}" if others else f"seed {last}"


def join(values: Iterable[float], digits: int = 4, exact: bool = False) -> str:
    """Join numbers with slashes; `exact` writes a complete success as 1.00."""
    texts = ("1.00" if exact and value == 1 else f"{value:.{digits}f}" for value in values)
    return " / ".join(texts)


def rounded(values: Iterable[float], places: int) -> str:
    return " / ".join(f"{round(value, places):,.0f}" for value in values)
