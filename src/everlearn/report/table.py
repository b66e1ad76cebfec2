"""Tables of cells: one row a group, one column a number of its summary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from everlearn.report import numbers
from everlearn.report.groups import Group


class Table(NamedTuple):
    """Words in rows and columns.

    Attributes:
        rows: the first cell names what the row is about, the others hold numbers.
        text: whether the other cells hold sentences instead.
    """

    title: str
    head: list[str]
    rows: list[list[str]]
    note: str
    text: bool = False


class Column(NamedTuple):
    """A number of the summary: its name there, its title, how it is written."""

    name: str
    title: str
    words: Callable[[float], str]


def group_table(title: str, groups: Sequence[Group], every: Sequence[Column], note: str) -> Table:
    """Make a table of the groups and columns that have a number."""
    columns = [c for c in every if any(group.values(c.name) for group in groups)]
    some = [group for group in groups if any(group.values(column.name) for column in columns)]
    rows = [[*first_cells(group), *mean_cells(group, columns)] for group in some]
    return Table(title, ["method", "seeds", *(c.title for c in columns)], rows, note)


def first_cells(group: Group) -> list[str]:
    """Name a group, and count its seeds."""
    return [group.label, str(len(group.runs))]


def mean_cells(group: Group, columns: Sequence[Column]) -> list[str]:
    """Write a group's means over the seeds that measured them."""
    found = [list(group.values(column.name).values()) for column in columns]
    return [
        column.words(sum(values) / len(values)) if values else numbers.NONE
        for column, values in zip(columns, found, strict=True)
    ]
