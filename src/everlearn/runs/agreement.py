"""Whether a repeated run agrees with the recorded one: the same bits, within an interval, or not."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Literal, NamedTuple

import numpy as np

from everlearn.core.jsonl import encode_row
from everlearn.metrics import wilson
from everlearn.report.tables.intervals import interval_over_seeds
from everlearn.rows import Row

Verdict = Literal["same bits", "within the interval", "differs", "cannot run"]
_VARIABLE = ("seconds", "evaluation_seconds", "host_memory", "memory", "peak_memory")
_MIN_SEEDS = 3  # Student's interval of two seeds says nothing

# (kind of row, last task learned) -> (images classified correctly, images tested)
Counts = dict[tuple[str, int], tuple[int, int]]


class Agreement(NamedTuple):
    """A verdict and, unless the bits are the same, the first difference or the reason."""

    verdict: Verdict
    detail: str = ""


def compare_rows(
    recorded: Sequence[Row], repeated: Sequence[Row], other_seeds: Sequence[Sequence[Row]] = ()
) -> Agreement:
    """Compare two runs of the same tasks; times and memory may differ.

    Args:
        other_seeds: rows of the same tasks of runs that differ in the seed alone; with three seeds or
            more, their interval counts besides Wilson's.
    """
    difference = _first_difference(_plain(recorded), _plain(repeated))
    if not difference:
        return Agreement("same bits")
    counts = [count_correct(rows) for rows in (recorded, *other_seeds)]
    outside = _first_missing(recorded, repeated)
    outside = outside or _first_outside(counts, count_correct(repeated))
    return Agreement("differs" if outside else "within the interval", outside or difference)


def count_correct(rows: Iterable[Row]) -> Counts:
    """Sum the counts of every evaluation after a task: correct and tested images."""
    correct: Counter[tuple[str, int]] = Counter()
    total: Counter[tuple[str, int]] = Counter()
    for row in map(dict[str, Any], rows):
        if isinstance(row.get("correct"), int) and "total" in row:
            key = (row["kind"], row["learned"])
            correct[key] += row["correct"]
            total[key] += row["total"]
    return {key: (correct[key], total[key]) for key in total if total[key]}


def _plain(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return rows as they are read from a file, costs last, without what varies."""
    plain = [json.loads(encode_row(row)) for row in rows]
    kept = [{key: row[key] for key in row if key not in _VARIABLE} for row in plain]
    return sorted(kept, key=lambda row: row["kind"] == "task")


def _first_difference(
    recorded: Sequence[Mapping[str, Any]], repeated: Sequence[Mapping[str, Any]]
) -> str:
    missing: Mapping[str, Any] = {}
    for old, new in zip_longest(recorded, repeated, fillvalue=missing):
        if old != new:
            return _describe(old, new)
    return ""


def _describe(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Name the first key in which two rows differ."""
    if not old or not new:
        return f"{_name(old or new)}: the row is {'not recorded' if new else 'not repeated'}"
    key = next(key for key in [*old, *new] if old.get(key) != new.get(key))
    values = (json.dumps(row.get(key)) for row in (old, new))
    recorded, repeated = (text if len(text) < 40 else f"{text[:36]} ..." for text in values)
    return f"{_name(old)}: {key} is {recorded}, repeated {repeated}"


def _name(row: Mapping[str, Any]) -> str:
    tested = f", tested on task {row['tested']}" if "tested" in row else ""
    return f"row {row['kind']!r} after task {row['learned']}{tested}"


def _first_missing(recorded: Iterable[Row], repeated: Iterable[Row]) -> str:
    """Describe the first row, with counts or not, that one of the runs does not have, if any."""
    names = [
        Counter(_name(row) for row in map(dict[str, Any], rows)) for rows in (recorded, repeated)
    ]
    for missing, state in ((names[0] - names[1], "repeated"), (names[1] - names[0], "recorded")):
        for name in missing:
            return f"{name}: the row is not {state}"
    return ""


def _first_outside(recorded: Sequence[Counts], repeated: Counts) -> str:
    """Describe the first evaluation that lies outside the interval, if any.

    Args:
        recorded: of the run itself, then of other seeds.
    """
    first_seed = recorded[0]
    if not first_seed:
        return "the rows differ, and hold no counts to compare"
    for key in sorted(first_seed.keys() | repeated.keys(), key=lambda key: (key[1], key[0])):
        kind, learned = key
        place = f"{kind!r} after task {learned}"
        if key not in first_seed or key not in repeated or first_seed[key][1] != repeated[key][1]:
            return f"{place}: {_fraction(first_seed, key)}, repeated {_fraction(repeated, key)}"
        low, high = _interval([counts[key] for counts in recorded if key in counts])
        correct, total = repeated[key]
        if not low <= correct / total <= high:
            limits = f"outside {low:.4f} to {high:.4f}"
            return f"{place}: {_fraction(first_seed, key)}, repeated {_fraction(repeated, key)}, {limits}"
    return ""


def _interval(counts: Sequence[tuple[int, int]]) -> tuple[float, float]:
    """Return Wilson's interval of the first counts, widened to that over seeds where there are enough."""
    low, high = map(float, wilson(*counts[0]))
    if len(counts) < _MIN_SEEDS:
        return low, high
    seeds = interval_over_seeds(np.array([[correct / total] for correct, total in counts]))
    return min(low, float(seeds.low[0])), max(high, float(seeds.high[0]))


def _fraction(counts: Counts, key: tuple[str, int]) -> str:
    return f"{counts[key][0]} of {counts[key][1]} correct" if key in counts else "no rows"
