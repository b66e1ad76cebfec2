"""Tables as Markdown and LaTeX; special characters in cells are escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from pathlib import Path

from everlearn.core.files import write_file
from everlearn.report.tables.table import Table

_LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"$<$", ">": r"$>$", "|": r"$|$", "−": "$-$", "–": "--", "—": "---", "…": r"\dots{}",
    "≤": r"$\le$", "≥": r"$\ge$", "≈": r"$\approx$", "×": r"$\times$", "±": r"$\pm$",
    "→": r"$\to$", "µ": r"$\mu$", "μ": r"$\mu$", "θ": r"$\theta$", "σ": r"$\sigma$",
    "²": "$^2$", "°": r"$^\circ$", "·": r"$\cdot$", "’": "'", "“": "``", "”": "''",
    "[": "{[}", "*": "{*}",  # at the start of a row, `\\` would take them as an argument
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}  # fmt: skip
_LAST_LATIN = 0x17F  # LaTeX knows letters up to here without a package


def write_tables(path: Path, tables: Sequence[Table]) -> None:
    """Write tables as Markdown and as LaTeX.

    Args:
        path: without a suffix; .md and .tex are appended.
    """
    for suffix, convert in ((".md", to_markdown), (".tex", to_latex)):
        content = "\n".join(map(convert, tables)).encode()
        write_file(path.with_name(path.name + suffix), content)


def to_markdown(table: Table) -> str:
    """Return a table in Markdown, below its title and above its note."""
    title = _escape_markdown(table.title)
    return f"### {title}\n\n{to_markdown_rows(table)}\n\n{_escape_markdown(table.note)}\n"


def to_markdown_rows(table: Table) -> str:
    """Return the rows of a table in Markdown, without title and note."""
    rule = ["---", *["---" if table.text else "---:"] * (len(table.head) - 1)]
    head, *rows = (_markdown_row(row) for row in (table.head, *table.rows))
    return "\n".join([head, f"| {' | '.join(rule)} |", *rows])


def to_latex(table: Table) -> str:
    """Return a LaTeX tabular that needs no package, with the title in a comment above."""
    head, *rows = (
        " & ".join(map(_escape_latex, row)) + r" \\" for row in (table.head, *table.rows)
    )
    body = "\n".join([head, r"\hline", *rows])
    return (
        f"% {_escape_latex(table.title)}\n"
        f"\\begin{{tabular}}{{{_columns(table)}}}\n\\hline\n{body}\n\\hline\n\\end{{tabular}}\n"
    )


def _columns(table: Table) -> str:
    rest = len(table.head) - 1
    if not table.text:
        return "l" + "r" * rest
    # Columns of fixed width wrap sentences; 0.8 leaves room for the gaps between columns.
    return "l" + rf"p{{{0.8 / max(rest, 1):.2f}\textwidth}}" * rest


def _markdown_row(row: Sequence[str]) -> str:
    return f"| {' | '.join(map(_escape_markdown, row))} |"


def _escape_markdown(text: str) -> str:
    line = " ".join(escape(text, quote=False).split())
    return re.sub(r"([\\`*_\[\]|#~])", r"\\\1", line)


def _escape_latex(text: str) -> str:
    return "".join(_LATEX.get(letter) or _latin(letter) for letter in " ".join(text.split()))


def _latin(letter: str) -> str:
    """Keep letters that LaTeX knows, and name others by their code point."""
    known = letter.isascii() or (letter.isalpha() and ord(letter) <= _LAST_LATIN)
    return letter if known else f"U+{ord(letter):04X}"
