"""A table as Markdown, HTML and LaTeX; whatever its cells hold stays text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html import escape

from everlearn.report.table import Table

_LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"$<$", ">": r"$>$", "|": r"$|$", "−": "$-$", "–": "--", "\n": " ",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}  # fmt: skip


def to_markdown(table: Table) -> str:
    """Write a table under its title, with its note below."""
    rule = ["---", *["---:"] * (len(table.head) - 1)]
    head, *rows = (_line(row, _in_markdown) for row in (table.head, *table.rows))
    lines = "\n".join([head, f"| {' | '.join(rule)} |", *rows])
    return f"### {_in_markdown(table.title)}\n\n{lines}\n\n{_in_markdown(table.note)}\n"


def to_html(table: Table) -> str:
    """Write a table that scrolls in a box of its own, with its note below."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in table.head)
    rows = "\n".join(_html_row(row) for row in table.rows)
    return (
        f'<div class="box" tabindex="0"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n'
        f'</tbody>\n</table></div>\n<p class="note">{escape(table.note)}</p>'
    )


def to_latex(table: Table) -> str:
    """Write a tabular that needs no package."""
    head, *rows = (" & ".join(map(_in_latex, row)) + r" \\" for row in (table.head, *table.rows))
    columns = "l" + "r" * (len(table.head) - 1)
    body = "\n".join([head, r"\hline", *rows])
    return f"\\begin{{tabular}}{{{columns}}}\n\\hline\n{body}\n\\hline\n\\end{{tabular}}\n"


def _html_row(row: Sequence[str]) -> str:
    first, *rest = map(escape, row)
    cells = "".join(f"<td>{cell}</td>" for cell in rest)
    return f'<tr><th scope="row">{first}</th>{cells}</tr>'


def _line(row: Sequence[str], words: Callable[[str], str]) -> str:
    return f"| {' | '.join(map(words, row))} |"


def _in_markdown(words: str) -> str:
    line = " ".join(escape(words, quote=False).split())
    return re.sub(r"([\\`*_\[\]|#~])", r"\\\1", line)


def _in_latex(words: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in words)
