"""Train, val and test rows of a data set by class: the official test set, or a fraction of the rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from everlearn.stream.datasets.files import Arrays, Ints
from everlearn.stream.split import ClassKey, Counts, split_finite

TEST_SHARE = 0.2


class ClassSplits(NamedTuple):
    """The rows of every class that has training images, in the order of the data."""

    train: dict[int, Ints]
    val: dict[int, Ints]
    test: dict[int, Ints]


def training_classes(arrays: Arrays) -> Ints:
    """Return the classes that have training images."""
    return np.unique(arrays.labels if arrays.test is None else arrays.labels[~arrays.test])


def split_rows(
    arrays: Arrays,
    seed: int,
    val_share: float,
    test_share: float | None,
    bands: Ints | None = None,
) -> ClassSplits:
    """Split the rows of every class; the class id and the seed determine how.

    Args:
        test_share: the fraction of rows to test on; None where the test set is official.
        bands: (N,) the band of every row, where a class must keep a training row in each of its bands.
    """
    splits = ClassSplits({}, {}, {})
    order = np.argsort(arrays.labels, kind="stable")
    of_class = np.split(order, np.cumsum(np.bincount(arrays.labels))[:-1])
    for label in training_classes(arrays).tolist():
        key = ClassKey(seed, label, 0, 0)
        found = _split_class(arrays, of_class[label], key, val_share, test_share, bands)
        for split, rows in zip(splits, found, strict=True):
            split[label] = rows
    return splits


def _split_class(
    arrays: Arrays,
    rows: Ints,
    key: ClassKey,
    val_share: float,
    test_share: float | None,
    bands: Ints | None,
) -> tuple[Ints, Ints, Ints]:
    """Split one class; its exemplar and one row of each band are always training rows."""
    official = rows[:0] if arrays.test is None else rows[arrays.test[rows]]
    pool = rows if arrays.test is None else rows[~arrays.test[rows]]
    kept = np.array([(arrays.exemplars or {}).get(key.label, int(pool[0]))])
    if bands is not None:
        kept = np.union1d(kept, pool[np.unique(bands[pool], return_index=True)[1]])
    free = pool[~np.isin(pool, kept)]
    test = min(round((test_share or 0.0) * len(pool)), len(free))
    val = min(round(val_share * len(pool)), len(free) - test)
    counts = Counts(len(free) - test - val, val, test)
    trains, vals, tests = (free[rows[0]] for rows in split_finite(len(free), counts, [key]))
    return (
        np.sort(np.append(trains, kept)),
        vals,
        official if test_share is None else tests,
    )
