"""Train, val and test rows of a data set, by class: official where they are, else by shares."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from everlearn.stream.arrays.files import Arrays, Ints
from everlearn.stream.split import Counts, Key, shuffle_finite

TEST_SHARE = 0.2


class Parts(NamedTuple):
    """The rows of every class that can be trained on, in the order of the data."""

    train: dict[int, Ints]
    val: dict[int, Ints]
    test: dict[int, Ints]


def training_classes(arrays: Arrays) -> Ints:
    """The classes that have training images."""
    return np.unique(arrays.labels if arrays.test is None else arrays.labels[~arrays.test])


def part_rows(
    arrays: Arrays,
    seed: int,
    val_share: float,
    test_share: float | None,
    bands: Ints | None = None,
) -> Parts:
    """Part the rows of every class by its own key.

    Args:
        test_share: None where the test is official.
        bands: of every row, where a class must keep a training row in each of its bands.
    """
    parts = Parts({}, {}, {})
    order = np.argsort(arrays.labels, kind="stable")
    of_class = np.split(order, np.cumsum(np.bincount(arrays.labels))[:-1])
    for label in training_classes(arrays).tolist():
        rows, key = of_class[label], Key(seed, label, 0, 0)
        cut = _part_class(arrays, rows, key, val_share, test_share, bands)
        for table, chosen in zip(parts, cut, strict=True):
            table[label] = chosen
    return parts


def _part_class(
    arrays: Arrays,
    rows: Ints,
    key: Key,
    val_share: float,
    test_share: float | None,
    bands: Ints | None,
) -> tuple[Ints, Ints, Ints]:
    """Part one class; its exemplar is always a training row, and one row at least is, of each band."""
    official = rows[:0] if arrays.test is None else rows[arrays.test[rows]]
    pool = rows if arrays.test is None else rows[~arrays.test[rows]]
    kept = np.array([(arrays.exemplars or {}).get(key.label, int(pool[0]))])
    if bands is not None:
        kept = np.union1d(kept, pool[np.unique(bands[pool], return_index=True)[1]])
    free = pool[~np.isin(pool, kept)]
    test = min(round((test_share or 0.0) * len(pool)), len(free))
    val = min(round(val_share * len(pool)), len(free) - test)
    counts = Counts(len(free) - test - val, val, test)
    cut = shuffle_finite(len(free), counts, [key])
    trains, vals, tests = (free[part[0]] for part in cut)
    return (
        np.sort(np.append(trains, kept)),
        vals,
        official if test_share is None else tests,
    )
