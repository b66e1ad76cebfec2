"""Tables of text cells: one row per group, one column per number of its summary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from everlearn.report.tables import numbers
from everlearn.report.tables.groups import Group


class Table(NamedTuple):
    """Text in rows and columns.

    Attributes:
        rows: the first cell names the row, the others hold numbers.
        text: whether the other cells hold sentences instead of numbers.
    """

    title: str
    head: list[str]
    rows: list[list[str]]
    note: str
    text: bool = False


class Column(NamedTuple):
    """A number of the summary: its key, its title, and the function that formats it."""

    name: str
    title: str
    format: Callable[[float], str]


def group_table(
    title: str, groups: Sequence[Group], candidates: Sequence[Column], note: str
) -> Table:
    """Make a table of the groups and columns that have a number."""
    columns = measured_columns(groups, candidates)
    measured = [group for group in groups if any(group.values(c.name) for c in columns)]
    rows = [[*first_cells(group), *mean_cells(group, columns)] for group in measured]
    return Table(title, ["method", "seeds", *(c.title for c in columns)], rows, note)


def measured_columns(groups: Sequence[Group], columns: Sequence[Column]) -> list[Column]:
    """Return the columns in which any group has a number."""
    return [column for column in columns if any(group.values(column.name) for group in groups)]


def first_cells(group: Group) -> list[str]:
    """Return the label of a group and its number of seeds."""
    return [group.label, str(len(group.runs))]


def mean_cells(group: Group, columns: Sequence[Column]) -> list[str]:
    """Return the means of a group over the seeds that measured them."""
    means = {column: group.mean(column.name) for column in columns}
    return [
        numbers.MISSING if mean is None else column.format(mean) for column, mean in means.items()
    ]
