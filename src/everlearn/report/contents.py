"""What the book of experiments holds: links to its chapters, and their verdicts at a glance."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from everlearn.report.chapter import Chapter, Heading
from everlearn.report.table import Table
from everlearn.report.verdict import Verdict, badge, check_verdict

_HEAD = ["experiment", "source", "statement", "published", "ours", "verdict"]
_NOTE = "Better, equal or worse than published; why is told in the chapter."

Chapters = Sequence[tuple[Heading, Chapter]]


def overview_table(chapters: Chapters) -> Table:
    """Make a table of words, one row a verdict."""
    rows = [
        [heading.name, heading.source, *_facts(verdict), verdict.verdict]
        for heading, chapter in chapters
        for verdict in chapter.verdicts
    ]
    return Table("Verdicts", _HEAD, rows, _NOTE, text=True)


def list_verdicts(chapters: Chapters) -> str:
    """Show all verdicts as an HTML table that links to the chapters."""
    head = "".join(f'<th scope="col">{name}</th>' for name in _HEAD)
    rows = "\n".join(_row(*pair) for pair in _pairs(chapters))
    return (
        f'<div class="box" tabindex="0"><table class="text stack">\n<thead><tr>{head}</tr></thead>\n'
        f'<tbody>\n{rows}\n</tbody>\n</table></div>\n<p class="note">{_NOTE}</p>'
    )


def list_contents(chapters: Chapters) -> str:
    """Show a list of links to the chapters."""
    items = (
        f"<li>{_link(heading, heading.title)} "
        f'<span class="source">{escape(heading.source)}</span></li>'
        for heading, _ in chapters
    )
    return f"<ol>{''.join(items)}</ol>"


def _pairs(chapters: Chapters) -> list[tuple[Heading, Verdict]]:
    return [
        (heading, check_verdict(verdict))
        for heading, chapter in chapters
        for verdict in chapter.verdicts
    ]


def _row(heading: Heading, verdict: Verdict) -> str:
    cells = [escape(heading.source), *map(escape, _facts(verdict)), badge(verdict.verdict)]
    # On a phone the cells stand below one another, each after the name of its column.
    named = zip(_HEAD[1:], cells, strict=True)
    rest = "".join(f'<td data-head="{name}">{cell}</td>' for name, cell in named)
    return f'<tr><th scope="row">{_link(heading, heading.name)}</th>{rest}</tr>'


def _facts(verdict: Verdict) -> list[str]:
    return [verdict.statement, verdict.published, verdict.ours]


def _link(heading: Heading, words: str) -> str:
    return f'<a href="#{escape(heading.name)}">{escape(words)}</a>'
