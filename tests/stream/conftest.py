"""What a scenario is, as plain functions of the label sets of its tasks."""

from __future__ import annotations

from collections.abc import Iterable

from everlearn.stream import Task


def class_sets(stream: Iterable[Task]) -> list[set[int]]:
    return [set(task.train.labels.tolist()) for task in stream]


def is_ni(sets: list[set[int]]) -> bool:
    """Every later label set is contained in the first."""
    return all(later <= sets[0] for later in sets)


def is_nc(sets: list[set[int]]) -> bool:
    """Every label set is disjoint from all earlier ones."""
    return sum(map(len, sets)) == len(set().union(*sets))


def is_nic(sets: list[set[int]]) -> bool:
    """Some task repeats a known class, and some brings one that is not in the first."""
    repeats = any(sets[k] & set().union(*sets[:k]) for k in range(1, len(sets)))
    return repeats and not is_ni(sets)
