"""Sections that both kinds of report share: tables, heat maps, and the provenance of runs."""

from __future__ import annotations

from collections.abc import Sequence

from everlearn.report.charts.heat_map import draw_heat_map
from everlearn.report.experiment import Figure
from everlearn.report.loaded_run import LoadedRun
from everlearn.report.page import Section, render
from everlearn.report.provenance import run_origin
from everlearn.report.tables.groups import Group
from everlearn.report.tables.numbers import count
from everlearn.report.tables.table import Table

OVERVIEW = "Overview"
DETAILS = "Details"
_MAX_UNFOLDED_MAPS = 4


def table_section(title: str, anchor: str, tables: Sequence[Table], command: str = "") -> Section:
    """Show tables one below the other."""
    html = render("tables.html.jinja", {"tables": tables})
    return Section(title, anchor, "", html, command, OVERVIEW)


def heat_map_section(groups: Sequence[Group], command: str = "") -> Section:
    """Show the accuracy matrix of the first seed of each group; many maps are folded."""
    maps = [
        Figure(draw_heat_map(group.runs[0].rows, f"heat-{number}"), _first_seed(group))
        for number, group in enumerate(groups)
    ]
    folded = count(len(maps), "map") if len(maps) > _MAX_UNFOLDED_MAPS else ""
    text = (
        "Accuracy on each task after each number of learned tasks. Empty cells were not measured."
    )
    html = render("figures.html.jinja", {"figures": maps, "folded": folded})
    return Section("Task by task", "task-by-task", text, html, command, DETAILS)


def runs_section(runs: Sequence[LoadedRun], text: str) -> Section:
    """List runs with the provenance of each."""
    html = render("origins.html.jinja", {"origins": [run_origin(run) for run in runs]})
    return Section("Runs", "runs", text, html, "", DETAILS)


def _first_seed(group: Group) -> str:
    return f"{group.label}, seed {group.runs[0].seed}"
