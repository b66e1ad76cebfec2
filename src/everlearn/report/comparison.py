"""The report of a set of runs: a page, figures and tables in a folder."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from types import MappingProxyType

from everlearn.core.files import write_file
from everlearn.report.charts.curves import draw_curves, draw_probes
from everlearn.report.experiment import Figure, Picture
from everlearn.report.loaded_run import LoadedRun
from everlearn.report.page import Lead, Page, Section, render, write_page
from everlearn.report.provenance import to_json
from everlearn.report.sections import (
    DETAILS,
    OVERVIEW,
    heat_map_section,
    runs_section,
    table_section,
)
from everlearn.report.tables.comparison_tables import make_tables
from everlearn.report.tables.formats import write_tables
from everlearn.report.tables.groups import Group, group_runs
from everlearn.report.tables.intervals import describe_intervals
from everlearn.report.tables.numbers import count

Pictures = Mapping[str, tuple[str, bytes]]
_NO_PICTURES: Pictures = MappingProxyType({})


def write_comparison(
    runs: Sequence[LoadedRun],
    out: str | PathLike[str],
    title: str = "Everlearn report",
    pictures: Pictures = _NO_PICTURES,
    command: str | None = None,
) -> Path:
    """Write index.html, curves.svg, curves.png, table.md and table.tex; return the path of the page.

    Args:
        runs: as `everlearn.runs.load.load_runs` returns them.
        out: folder to write to.
        pictures: title -> (caption, bytes of an image), shown near the end of the page.
        command: command line that reproduces the report; by default `everlearn report` with the
            folders of the runs.
    """
    command = report_command([run.folder for run in runs], out) if command is None else command
    folder = Path(out)
    groups = group_runs(_measured(runs))
    tables = make_tables(groups)
    curves = draw_curves(groups)
    write_file(folder / "curves.svg", curves.wide.encode())
    write_file(folder / "curves.png", curves.png)
    write_tables(folder / "table", tables)
    sections = [
        table_section("Results", "results", tables),
        *_probe_section(groups),
        heat_map_section(groups),
        *_picture_sections(pictures),
        runs_section(runs, "Every number on this page is computed from these runs."),
        _stream_section(runs),
    ]
    lead = Lead(curves.wide, curves.narrow, _caption(groups))
    page = Page(title, _describe_runs(runs), command, lead, sections)
    return write_page(folder / "index.html", page)


def report_command(folders: Sequence[Path], out: str | PathLike[str]) -> str:
    """Return the command line that writes a report of these folders."""
    return shlex.join(
        ["everlearn", "report", *(fspath(folder) for folder in folders), "--out", fspath(out)]
    )


def _measured(runs: Sequence[LoadedRun]) -> list[LoadedRun]:
    found = [run for run in runs if run.measured]
    if not found:
        folder = runs[0].folder
        raise ValueError(
            f"no run was tested after a task yet, such as the one in {folder}; finish its first tasks: "
            f"everlearn resume {folder}"
        )
    return found


def _caption(groups: Sequence[Group]) -> str:
    intervals = describe_intervals({len(group.runs) for group in groups})
    return f"Mean accuracy over all tasks learned so far. Bands: {intervals}."


def _describe_runs(runs: Sequence[LoadedRun]) -> str:
    """Count the runs, and name those that are unfinished or left out."""
    seeds = len({run.seed for run in runs})
    sentences = [f"{count(len(runs), 'run')}, {count(seeds, 'seed')}{_stream_length(runs)}."]
    unfinished = [run for run in runs if run.measured and not run.finished]
    if unfinished:
        sentences.append(f"Unfinished, so not comparable with the others: {_names(unfinished)}.")
    untested = [run for run in runs if not run.measured]
    if untested:
        sentences.append(f"Left out, because they were not tested yet: {_names(untested)}.")
    return " ".join(sentences)


def _names(runs: Sequence[LoadedRun]) -> str:
    return "; ".join(f"{run.label}, seed {run.seed}" for run in runs)


def _stream_length(runs: Sequence[LoadedRun]) -> str:
    lengths = sorted({run.stream["tasks"] for run in runs if run.stream.get("tasks")})
    if len(lengths) < 2:
        return f", a stream of {count(lengths[0], 'task')}" if lengths else ""
    shorter = ", ".join(map(str, lengths[:-1]))
    return f", a stream of {lengths[-1]} tasks; some runs learned only its first {shorter}"


def _probe_section(groups: Sequence[Group]) -> Iterator[Section]:
    svg = draw_probes(groups)
    if svg:
        text = "Accuracy on test images of task 1, measured while the later tasks are learned."
        html = render("figures.html.jinja", {"figures": [Figure(svg, "")], "folded": ""})
        yield Section("Task 1 during training", "probes", text, html, "", OVERVIEW)


def _picture_sections(pictures: Pictures) -> Iterator[Section]:
    for number, (title, (caption, content)) in enumerate(pictures.items(), 1):
        html = render("picture.html.jinja", {"picture": Picture(content, caption)})
        yield Section(title, f"picture-{number}", "", html, "", DETAILS)


def _stream_section(runs: Sequence[LoadedRun]) -> Section:
    streams = [{**run.stream, "seed": None} for run in runs]
    longest = max(streams, key=lambda stream: stream.get("tasks") or 0)
    if all(stream == longest for stream in streams):
        text = "All runs learned this stream, each with its own seed."
    else:
        text = "Some runs learned the beginning of this stream, or used another canvas."
    settings = {name: value for name, value in longest.items() if name != "seed"}
    html = render("json.html.jinja", {"text": to_json(settings)})
    return Section("Stream", "stream", text, html, "", DETAILS)
