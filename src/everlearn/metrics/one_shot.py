"""One-shot accuracy: classes known from one exemplar each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from everlearn.rows import OneShotRow, Row, of_kind


class Setting(NamedTuple):
    """How one-shot classes were tested.

    Attributes:
        mode: standard, among the new classes alone, or generalised, among all.
        factors: grid or continuous.
        classes: number of new classes.
    """

    mode: str
    factors: str
    classes: int


class Count(NamedTuple):
    """Correct answers out of all answers."""

    correct: int
    total: int


def one_shot(rows: Iterable[Row]) -> dict[Setting, Count]:
    """Take the last one-shot row of every setting."""
    found = {
        Setting(row["mode"], row["factors"], row["classes"]): Count(row["correct"], row["total"])
        for row in of_kind(rows, OneShotRow)
    }
    return dict(sorted(found.items()))
