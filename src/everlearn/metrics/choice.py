"""Right answers to multiple-choice questions, for each number of choices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from everlearn.metrics.proportion import share
from everlearn.metrics.rows import Row


class Tally(NamedTuple):
    """So many of so many answers were right."""

    right: int
    total: int

    @property
    def accuracy(self) -> float:
        """Divide."""
        return float(share(self.right, self.total))


def tally(rows: Iterable[Row]) -> dict[int, Tally]:
    """Count right answers for each number of choices, in order."""
    rights: dict[int, list[bool]] = {}
    for row in rows:
        rights.setdefault(row["n"], []).append(row["chosen"] == row["answer"])
    return {n: Tally(sum(right), len(right)) for n, right in sorted(rights.items())}
