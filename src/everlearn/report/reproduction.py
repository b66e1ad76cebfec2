"""The report of all experiments: main figure, findings, summary, verdicts, a section each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from everlearn.core.files import write_file
from everlearn.report.experiment import Experiment, experiment_section
from everlearn.report.page import Lead, Page, Section, render, write_page
from everlearn.report.sections import OVERVIEW, heat_map_section, runs_section, table_section
from everlearn.report.tables.formats import write_tables
from everlearn.report.tables.groups import Group
from everlearn.report.tables.summary import summary_table
from everlearn.report.tables.table import Table
from everlearn.report.verdict import count_verdicts

_VERDICTS_TEXT = (
    "Our numbers beside the published ones: better, equal or worse if the interval over at least three "
    "seeds says so, else undecided. Click on an experiment to see each statement, both numbers and the "
    "reason."
)


class Reproduction(NamedTuple):
    """The content of the report.

    Attributes:
        intro: a paragraph about the experiments.
        command: command line that reproduces all of them.
        groups: runs of the summary and the heat maps; runs without a test are left out.
        lead: the main figure and the findings, if there are any.
    """

    title: str
    intro: str
    command: str
    groups: Sequence[Group]
    experiments: Sequence[Experiment]
    lead: Lead | None = None


def write_report(out: Path, content: Reproduction) -> Path:
    """Write index.html, tables.md, tables.tex and figures/*.svg; return the path of the page."""
    _check_names(content.experiments)
    tested = [group for group in map(_tested, content.groups) if group.runs]
    content = content._replace(groups=tested)
    write_tables(out / "tables", list(_tables(content)))
    for name, svg in _figures(content.experiments):
        write_file(out / "figures" / f"{name}.svg", svg.encode())
    sections = list(_sections(content))
    page = Page(content.title, content.intro, content.command, content.lead, sections)
    return write_page(out / "index.html", page)


def verdict_table(experiments: Sequence[Experiment]) -> Table:
    """Make a table of text with one row per verdict."""
    head = ["experiment", "source", "statement", "published", "ours", "verdict"]
    rows = [
        [info.name, info.source, one.statement, one.published, one.ours, one.verdict]
        for info, result in experiments
        for one in result.verdicts
    ]
    note = (
        "Better, equal or worse than published if the 95 % interval over at least three seeds says so, "
        "else undecided; the report gives the reasons."
    )
    return Table("Verdicts", head, rows, note, text=True)


def _check_names(experiments: Sequence[Experiment]) -> None:
    names = [info.name for info, _ in experiments]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(
            f"experiments need different names, found twice: {', '.join(repeated)}; rename one"
        )


def _tested(group: Group) -> Group:
    return group._replace(runs=[run for run in group.runs if run.measured])


def _sections(content: Reproduction) -> Iterator[Section]:
    if content.groups:
        yield table_section("Summary", "summary", [summary_table(content.groups)])
    yield _verdict_section(content.experiments)
    yield from (experiment_section(*experiment) for experiment in content.experiments)
    if content.groups:
        yield heat_map_section(content.groups)
        runs = [run for group in content.groups for run in group.runs]
        yield runs_section(runs, "The summary is computed from these runs.")


def _verdict_section(experiments: Sequence[Experiment]) -> Section:
    judged = [
        (info, result.verdicts, count_verdicts(result.verdicts))
        for info, result in experiments
        if result.verdicts
    ]
    html = render("verdicts.html.jinja", {"experiments": judged})
    return Section("Verdicts", "verdicts", _VERDICTS_TEXT, html, "", OVERVIEW)


def _tables(content: Reproduction) -> Iterator[Table]:
    if content.groups:
        yield summary_table(content.groups)
    yield verdict_table(content.experiments)
    for info, result in content.experiments:
        for table in result.tables:
            yield table._replace(title=f"{info.title}: {table.title}")


def _figures(experiments: Sequence[Experiment]) -> Iterator[tuple[str, str]]:
    """Name figures after their experiments: fig4, or fig4-1 and fig4-2 where there are two."""
    for info, result in experiments:
        numbered = len(result.figures) > 1
        for number, figure in enumerate(result.figures, 1):
            yield info.name + (f"-{number}" if numbered else ""), figure.svg
