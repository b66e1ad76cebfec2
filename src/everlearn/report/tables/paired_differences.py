"""Differences between every two methods, over the seeds that both have run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from everlearn.metrics import compare_shared
from everlearn.report.tables import numbers
from everlearn.report.tables.groups import Group
from everlearn.report.tables.table import Table

_HEAD = ["methods", "seeds", "difference", "95 % interval", "p, t-test", "p, sign flips"]
_NOTE = (
    "First minus second method, average accuracy, over the seeds that both have run; p values are "
    "two-sided and not corrected for the number of pairs."
)


def paired_differences(groups: Sequence[Group]) -> Table:
    """Compare every two finished groups of equal stream length that share at least MIN_SEEDS seeds.

    A run that was cut after some tasks has a stream of so many tasks.
    """
    finished = [group for group in groups if all(run.finished for run in group.runs)]
    pairs = [pair for pair in combinations(finished, 2) if _lengths(pair[0]) == _lengths(pair[1])]
    rows = [_row(first, second) for first, second in pairs]
    return Table("Paired differences", _HEAD, [row for row in rows if row], _NOTE)


def _lengths(group: Group) -> set[int | None]:
    return {run.stream.get("tasks") for run in group.runs}


def _row(first: Group, second: Group) -> list[str]:
    """Return the cells of one comparison; none with fewer than MIN_SEEDS shared seeds."""
    found = compare_shared(first.values("average_accuracy"), second.values("average_accuracy"))
    if found is None:
        return []
    spread = found.spread
    return [
        f"{first.label} − {second.label}",
        str(spread.seeds),
        numbers.signed(spread.mean),
        f"{numbers.signed(spread.low)} to {numbers.signed(spread.high)}",
        numbers.p_value(found.t_test),
        numbers.p_value(found.sign_flip),
    ]
