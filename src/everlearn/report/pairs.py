"""Two methods compared over the seeds that both have run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from everlearn.metrics import compare
from everlearn.metrics.seeds import MOST
from everlearn.report import numbers
from everlearn.report.groups import Group

PAIR_HEAD = ["methods", "seeds", "difference", "95 % interval", "p, t-test", "p, sign flips"]
PAIR_NOTE = (
    "First minus second method, average accuracy, over the seeds that both have run; p values are "
    "two-sided and not corrected for the number of pairs."
)


def pair_cells(groups: Sequence[Group]) -> list[list[str]]:
    """Compare every two finished groups of as many tasks that share two seeds or more."""
    whole = [group for group in groups if all(run.finished for run in group.runs)]
    alike = ((a, b) for a, b in combinations(whole, 2) if _tasks(a) == _tasks(b))
    rows = [_cells(first, second) for first, second in alike]
    return [row for row in rows if row]


def _tasks(group: Group) -> set[int | None]:
    return {run.stream.get("tasks") for run in group.runs}


def _cells(first: Group, second: Group) -> list[str]:
    left, right = (group.values("average_accuracy") for group in (first, second))
    seeds = sorted(left.keys() & right.keys())[:MOST]
    if len(seeds) < 2:
        return []
    found = compare({s: left[s] for s in seeds}, {s: right[s] for s in seeds})
    spread = found.spread
    return [
        f"{first.label} − {second.label}",
        str(len(seeds)),
        numbers.change(spread.mean),
        f"{numbers.change(spread.low)} to {numbers.change(spread.high)}",
        numbers.chance(found.t_test),
        numbers.chance(found.sign_flip),
    ]
