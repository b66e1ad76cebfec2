"""A table as Markdown, HTML and LaTeX; whatever its cells hold stays text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

from everlearn.disk import write_file
from everlearn.report.table import Table

_LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"$<$", ">": r"$>$", "|": r"$|$", "−": "$-$", "–": "--", "—": "---", "…": r"\dots{}",
    "≤": r"$\le$", "≥": r"$\ge$", "≈": r"$\approx$", "×": r"$\times$", "±": r"$\pm$",
    "→": r"$\to$", "µ": r"$\mu$", "μ": r"$\mu$", "θ": r"$\theta$", "σ": r"$\sigma$",
    "²": "$^2$", "°": r"$^\circ$", "·": r"$\cdot$", "’": "'", "“": "``", "”": "''",
    "[": "{[}", "*": "{*}",  # at the start of a row they would belong to the end of the last
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}  # fmt: skip
_LAST_LATIN = 0x17F  # LaTeX knows these letters without a package, others stop it


def write_tables(path: Path, tables: Sequence[Table]) -> None:
    """Write tables as Markdown and as LaTeX, to files with these endings.

    Args:
        path: without an ending.
    """
    for ending, words in ((".md", to_markdown), (".tex", to_latex)):
        content = "\n".join(map(words, tables)).encode()
        write_file(path.with_name(path.name + ending), content)


def to_markdown(table: Table) -> str:
    """Write a table under its title, with its note below."""
    rule = ["---", *["---" if table.text else "---:"] * (len(table.head) - 1)]
    head, *rows = (_line(row, _in_markdown) for row in (table.head, *table.rows))
    lines = "\n".join([head, f"| {' | '.join(rule)} |", *rows])
    return f"### {_in_markdown(table.title)}\n\n{lines}\n\n{_in_markdown(table.note)}\n"


def to_html(table: Table) -> str:
    """Write a table that scrolls in a box of its own, with its note below."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in table.head)
    rows = "\n".join(_html_row(row) for row in table.rows)
    kind = ' class="text"' if table.text else ""
    note = f'\n<p class="note">{escape(table.note)}</p>' if table.note else ""
    return (
        f'<div class="box" tabindex="0"><table{kind}>\n<thead><tr>{head}</tr></thead>\n<tbody>\n'
        f"{rows}\n</tbody>\n</table></div>{note}"
    )


def to_latex(table: Table) -> str:
    """Write a tabular that needs no package, its title in a comment above."""
    head, *rows = (" & ".join(map(_in_latex, row)) + r" \\" for row in (table.head, *table.rows))
    body = "\n".join([head, r"\hline", *rows])
    return (
        f"% {_in_latex(table.title)}\n"
        f"\\begin{{tabular}}{{{_columns(table)}}}\n\\hline\n{body}\n\\hline\n\\end{{tabular}}\n"
    )


def _columns(table: Table) -> str:
    rest = len(table.head) - 1
    if not table.text:
        return "l" + "r" * rest
    # Sentences must break; 0.8 leaves the rest of the line to the gaps between columns.
    return "l" + rf"p{{{0.8 / max(rest, 1):.2f}\textwidth}}" * rest


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
    return "".join(_LATEX.get(sign) or _letter(sign) for sign in " ".join(words.split()))


def _letter(sign: str) -> str:
    known = sign.isascii() or (sign.isalpha() and ord(sign) <= _LAST_LATIN)
    return sign if known else f"U+{ord(sign):04X}"
