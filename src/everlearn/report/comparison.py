"""The report of some runs: page, figures and tables in a folder."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from types import MappingProxyType

from everlearn.disk import write_file
from everlearn.report.curves import draw_curves, draw_probes
from everlearn.report.formats import to_html, write_tables
from everlearn.report.groups import Group, group_runs
from everlearn.report.heat import heat_maps
from everlearn.report.load import Finished, Place, load_runs
from everlearn.report.numbers import count
from everlearn.report.origin import show_json, tell_origins
from everlearn.report.page import Section, embed_picture, embed_svg, write_page
from everlearn.report.spread import describe
from everlearn.report.table import Table
from everlearn.report.tables import make_tables

Pictures = Mapping[str, tuple[str, bytes]]
_NONE: Pictures = MappingProxyType({})


def report(
    paths: Place | Iterable[Place],
    out: Place,
    title: str = "Everlearn report",
    pictures: Pictures = _NONE,
    command: str | None = None,
) -> Path:
    """Write index.html, curves.svg, curves.png, table.md and table.tex about runs; return the page.

    Args:
        paths: folders with runs in them or below.
        out: folder to write to.
        pictures: heading -> (caption, bytes of a PNG), for the end of the page.
        command: what makes the report again; by default `everlearn report` with these folders.
    """
    places = [paths] if isinstance(paths, (str, PathLike)) else list(paths)
    command = _command(places, out) if command is None else command
    runs = load_runs(places)
    groups, folder = group_runs(_measured(runs)), Path(out)
    tables, (svg, png) = make_tables(groups), draw_curves(groups)
    write_file(folder / "curves.svg", svg.encode())
    write_file(folder / "curves.png", png)
    write_tables(folder / "table", tables)
    figures = [*_figures(groups, svg, command), *_pictures(pictures)]
    sections = [_summary(runs, tables, command), *figures, *_origins(runs)]
    return write_page(folder / "index.html", title, sections)


def _command(places: Sequence[Place], out: Place) -> str:
    return shlex.join(
        ["everlearn", "report", *(fspath(place) for place in places), "--out", fspath(out)]
    )


def _measured(runs: Sequence[Finished]) -> list[Finished]:
    found = [run for run in runs if run.measured]
    if not found:
        folder = runs[0].folder
        raise ValueError(
            f"nothing was tested yet after learning a task, for one in {folder}; let a run learn its "
            f"first tasks, or go on with it: everlearn resume {folder}"
        )
    return found


def _summary(runs: Sequence[Finished], tables: Sequence[Table], command: str) -> Section:
    parts = "\n".join(f"<h3>{table.title}</h3>\n{to_html(table)}" for table in tables)
    return Section("", _in_words(runs), parts, command)


def _in_words(runs: Sequence[Finished]) -> str:
    """How many runs there are, and which of them do not tell all."""
    seeds = len({run.seed for run in runs})
    words = f"{count(len(runs), 'run')}, {count(seeds, 'seed')}{_lengths(runs)}."
    early = [f"{run.label}, seed {run.seed}" for run in runs if run.measured and not run.finished]
    empty = [f"{run.label}, seed {run.seed}" for run in runs if not run.measured]
    words += (
        f" Unfinished, so not to be compared with the others: {'; '.join(early)}." if early else ""
    )
    return words + (f" Left out, for nothing was tested yet: {'; '.join(empty)}." if empty else "")


def _lengths(runs: Sequence[Finished]) -> str:
    tasks = sorted({run.stream["tasks"] for run in runs if run.stream.get("tasks")})
    if len(tasks) < 2:
        return f", a stream of {count(tasks[0], 'task')}" if tasks else ""
    shorter = ", ".join(map(str, tasks[:-1]))
    return f", a stream of {tasks[-1]} tasks; some runs learned its first {shorter} only"


def _figures(groups: Sequence[Group], curves: str, command: str) -> Iterable[Section]:
    counts = {len(group.runs) for group in groups}
    words = f"Mean accuracy over the tasks met so far. Bands: {describe(counts)}."
    yield Section("Accuracy against tasks learned", words, embed_svg(curves), command)
    probes = draw_probes(groups)
    if probes:
        words = (
            "Accuracy on some test images of the first task, measured while learning the others."
        )
        yield Section("The first task while training", words, embed_svg(probes), command)
    yield heat_maps(groups, command)


def _pictures(pictures: Pictures) -> Iterable[Section]:
    for title, (caption, content) in pictures.items():
        yield Section(title, "", embed_picture(content, caption))


def _origins(runs: Sequence[Finished]) -> Iterable[Section]:
    words = "Every number above follows from these runs."
    yield Section("Runs", words, tell_origins(runs))
    streams = [{**run.stream, "seed": None} for run in runs]
    longest = max(streams, key=lambda stream: stream.get("tasks") or 0)
    same = all(stream == longest for stream in streams)
    words = (
        "All runs learned it" if same else "Some runs learned its beginning, or on another canvas"
    )
    shown = {name: value for name, value in longest.items() if name != "seed"}
    yield Section("Stream", f"{words}, each with its seed.", show_json(shown))
