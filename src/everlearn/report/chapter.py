"""A chapter of the book of experiments: one figure or table of a paper, and ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from types import MappingProxyType
from typing import NamedTuple

from everlearn.report.formats import to_html
from everlearn.report.load import Finished
from everlearn.report.numbers import count
from everlearn.report.origin import tell_origins, tell_part
from everlearn.report.page import Section, command_box, embed_picture, embed_svg
from everlearn.report.table import Table
from everlearn.report.verdict import Verdict, verdict_list
from everlearn.results import Row


class Figure(NamedTuple):
    """A drawing as SVG, and words below it."""

    svg: str
    caption: str


class Picture(NamedTuple):
    """The bytes of a PNG, JPEG or GIF, and words below it."""

    content: bytes
    caption: str


class Chapter(NamedTuple):
    """What an experiment found.

    Attributes:
        runs: those that all of it follows from.
        missing: names of runs that have no rows yet.
        parts: measurements beside runs, by name: where, when and how each was made.
        note: what a reader must know besides.
    """

    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()
    verdicts: Sequence[Verdict] = ()
    runs: Sequence[Finished] = ()
    missing: Sequence[str] = ()
    note: str = ""
    parts: Mapping[str, Row] = MappingProxyType({})


class Heading(NamedTuple):
    """What an experiment is.

    Attributes:
        name: of the experiment; links lead to it.
        source: where its statement stands: "Figure 4", or "ours".
        claim: the statement.
        command: what makes it again.
        cost: of that command, in words.
    """

    name: str
    title: str
    source: str
    claim: str
    command: str
    cost: str


def chapter_section(heading: Heading, chapter: Chapter) -> Section:
    """Make the part of the page about one experiment."""
    body = "\n".join(part for part in _parts(heading, chapter) if part)
    return Section(heading.title, "", body, name=heading.name)


def _parts(heading: Heading, chapter: Chapter) -> Iterator[str]:
    yield f'<p><span class="source">{escape(heading.source)}</span> {escape(heading.claim)}</p>'
    yield verdict_list(chapter.verdicts)
    yield from (embed_svg(*figure) for figure in chapter.figures)
    yield from (embed_picture(*picture) for picture in chapter.pictures)
    yield from (f"<h3>{escape(table.title)}</h3>\n{to_html(table)}" for table in chapter.tables)
    yield f'<p class="note">{escape(chapter.note)}</p>' if chapter.note else ""
    yield _missing(chapter.missing)
    yield f'<p class="cost">Cost: {escape(heading.cost)}</p>' if heading.cost else ""
    yield command_box(heading.command)
    yield _origins(chapter)


def _missing(names: Sequence[str]) -> str:
    words = f"no rows yet: {', '.join(names)}"
    return f'<p class="missing">{escape(words)}</p>' if names else ""


def _origins(chapter: Chapter) -> str:
    runs, parts = chapter.runs, chapter.parts
    things = [
        count(len(those), name) for those, name in ((runs, "run"), (parts, "measurement")) if those
    ]
    if not things:
        return ""
    words = f"Where the numbers come from: {' and '.join(things)}"
    told = "\n".join([tell_origins(runs), *(tell_part(*part) for part in parts.items())])
    return f'<details class="origins"><summary>{words}</summary>\n{told}</details>'
