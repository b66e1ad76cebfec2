"""An experiment's part of the report: one figure or table of a paper, and our version of it."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from everlearn.report.loaded_run import LoadedRun
from everlearn.report.page import Section, render
from everlearn.report.provenance import measurement_origin, run_origin
from everlearn.report.tables.numbers import count
from everlearn.report.tables.table import Table
from everlearn.report.verdict import Verdict, count_verdicts
from everlearn.rows import OriginRow

_IMAGE_TYPES = {b"\x89PNG\r\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}


class Figure(NamedTuple):
    """A chart as SVG text, with a caption."""

    svg: str
    caption: str


class Picture(NamedTuple):
    """The bytes of a PNG, JPEG or GIF, with a caption."""

    content: bytes
    caption: str

    @property
    def data_uri(self) -> str:
        """The image as a data URI."""
        types = [name for start, name in _IMAGE_TYPES.items() if self.content.startswith(start)]
        if not types:
            raise ValueError(
                "pictures must be PNG, JPEG or GIF, found bytes that begin with "
                f"{bytes(self.content[:8])!r}"
            )
        return f"data:{types[0]};base64,{base64.b64encode(self.content).decode()}"


class ExperimentResult(NamedTuple):
    """The results of an experiment.

    Attributes:
        runs: the runs that the results are computed from.
        missing: names of runs that have no rows yet.
        note: remarks for the reader.
        measurements: provenance of each measurement that is not a run, by name.
    """

    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()
    verdicts: Sequence[Verdict] = ()
    runs: Sequence[LoadedRun] = ()
    missing: Sequence[str] = ()
    note: str = ""
    measurements: Mapping[str, OriginRow] = MappingProxyType({})


class ExperimentInfo(NamedTuple):
    """The description of an experiment.

    Attributes:
        name: of the experiment, and the anchor of its section.
        source: the figure or table that it reproduces, such as "Figure 4", or "ours".
        claim: the statement that it tests.
        command: command line that reproduces it.
        cost: time that the command takes, in words.
        group: heading of the experiment in the contents, such as the paper's topic.
    """

    name: str
    title: str
    source: str
    claim: str
    command: str
    cost: str
    group: str = ""


Experiment = tuple[ExperimentInfo, ExperimentResult]


def experiment_section(info: ExperimentInfo, result: ExperimentResult) -> Section:
    """Build the section of one experiment: claim, verdicts, figures, tables, provenance."""
    values = {
        "info": info,
        "result": result,
        "counts": count_verdicts(result.verdicts),
        "origins_title": _origins_title(result),
        "origins": [
            *(run_origin(run) for run in result.runs),
            *(measurement_origin(*item) for item in result.measurements.items()),
        ],
    }
    html = render("experiment.html.jinja", values)
    return Section(info.title, info.name, "", html, info.command, info.group)


def _origins_title(result: ExperimentResult) -> str:
    counts = {"run": len(result.runs), "measurement": len(result.measurements)}
    return " and ".join(count(number, noun) for noun, number in counts.items() if number)
