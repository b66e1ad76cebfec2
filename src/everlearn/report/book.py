"""The book of all experiments: verdicts, a summary, a chapter each, and where all came from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from everlearn.disk import write_file
from everlearn.report.chapter import chapter_section
from everlearn.report.contents import Chapters, list_contents, list_verdicts, overview_table
from everlearn.report.formats import to_html, write_tables
from everlearn.report.groups import Group
from everlearn.report.heat import heat_maps
from everlearn.report.milestones import summary_table
from everlearn.report.origin import tell_origins
from everlearn.report.page import Section, write_page
from everlearn.report.table import Table


def write_book(
    out: Path, title: str, intro: str, groups: Sequence[Group], chapters: Chapters, command: str
) -> Path:
    """Write index.html, tables.md, tables.tex and figures/*.svg; return the page.

    Args:
        intro: what the page is about.
        groups: the runs of the summary and the heat maps; those without a test are left out.
        command: what makes the page again.
    """
    _check_names(chapters)
    tested = [group for group in map(_tested, groups) if group.runs]
    write_tables(out / "tables", list(_tables(tested, chapters)))
    for name, svg in _figures(chapters):
        write_file(out / "figures" / f"{name}.svg", svg.encode())
    return write_page(out / "index.html", title, _sections(intro, tested, chapters, command))


def _check_names(chapters: Chapters) -> None:
    names = [heading.name for heading, _ in chapters]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"chapters need different names, found twice: {', '.join(twice)}")


def _tested(group: Group) -> Group:
    return group._replace(runs=[run for run in group.runs if run.measured])


def _sections(
    intro: str, groups: Sequence[Group], chapters: Chapters, command: str
) -> Iterator[Section]:
    yield Section("", intro, "", command)
    if groups:
        yield Section("Summary", "", to_html(summary_table(groups)))
    yield Section("Verdicts", "", list_verdicts(chapters))
    yield Section("Experiments", "", list_contents(chapters))
    yield from (chapter_section(*pair) for pair in chapters)
    if groups:
        yield heat_maps(groups)
        runs = [run for group in groups for run in group.runs]
        yield Section("Runs", "The summary follows from these runs.", tell_origins(runs))


def _tables(groups: Sequence[Group], chapters: Chapters) -> Iterator[Table]:
    if groups:
        yield summary_table(groups)
    yield overview_table(chapters)
    for heading, chapter in chapters:
        for table in chapter.tables:
            yield table._replace(title=f"{heading.title}: {table.title}")


def _figures(chapters: Chapters) -> Iterator[tuple[str, str]]:
    """Name the figures after their chapters: fig4, or fig4-1 and fig4-2 where there are two."""
    for heading, chapter in chapters:
        many = len(chapter.figures) > 1
        for number, figure in enumerate(chapter.figures, 1):
            yield heading.name + (f"-{number}" if many else ""), figure.svg
