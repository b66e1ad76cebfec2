"""Train, val and test rows as a function of (seed, class, row).

The class, not the task, determines the split: where a class returns in a later task, an image that was
held out for testing stays held out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everlearn.core.random import Purpose, permutations, random_uint64, uniform
from everlearn.factors import UNIFORMS_PER_SAMPLE, Difference, Factors, Product, Space

_MAX_DRAWS = 64


class Counts(NamedTuple):
    """The number of rows per class in each split."""

    train: int
    val: int
    test: int


class ClassKey(NamedTuple):
    """What determines the rows of a class; training rows that are sampled differ by `visit`, the task."""

    seed: int
    label: int
    band: int
    visit: int


class SplitFactors(NamedTuple):
    """The factors of one class in each split."""

    train: Factors
    val: Factors
    test: Factors


def check_split(split: Sequence[float]) -> tuple[float, float, float]:
    """Return three counts or three fractions, or say what is allowed."""
    parts = tuple(split) if isinstance(split, (tuple, list)) else ()
    numbers = all(isinstance(v, (int, float, np.number)) and not isinstance(v, bool) for v in parts)
    if len(parts) != 3 or not numbers:
        raise TypeError(f"split must be three numbers (train, val, test), found {split!r}")
    if not all(0 <= v < float("inf") for v in parts) or parts[0] == 0:
        raise ValueError(
            f"split must be numbers of 0 or more with some for training, found {parts}"
        )
    if all(isinstance(v, (int, np.integer)) for v in parts):
        if sum(parts) == 1:
            raise ValueError(f"split {parts} could be fractions or counts; write 1.0 for all rows")
        return int(parts[0]), int(parts[1]), int(parts[2])
    if sum(parts) > 1 + 1e-9:
        raise ValueError(
            f"split must be three whole numbers (rows per task) or three fractions that sum to at most 1, "
            f"found {parts}"
        )
    return float(parts[0]), float(parts[1]), float(parts[2])


def is_counts(split: Sequence[float]) -> bool:
    """Tell whether a split holds counts (6000, 150, 100) rather than fractions (0.96, 0.024, 0.016)."""
    return all(isinstance(v, int) for v in split)


def count_rows(
    split: tuple[float, float, float], classes: int, pool: int, test_pool: int | None = None
) -> Counts:
    """Count the rows per class: divide counts among the classes, or take fractions of the pool.

    A fraction above zero gives at least one row.

    Args:
        pool: the number of combinations of factors that rows are taken from.
        test_pool: the same for test rows; None where they come out of `pool`.
    """
    if is_counts(split):
        train, val, test = (int(part) // classes for part in split)
        return Counts(train, val, test)
    val = _count_fraction(split[1], pool)
    test = _count_fraction(split[2], pool)
    train = pool - val - test if sum(split) > 1 - 1e-9 else _count_fraction(split[0], pool)
    return Counts(train, val, test if test_pool is None else _count_fraction(split[2], test_pool))


def _count_fraction(fraction: float, pool: int) -> int:
    return max(round(fraction * pool), 1) if fraction > 0 else 0


def split_finite(size: int, counts: Counts, keys: Sequence[ClassKey]) -> list[NDArray[np.int64]]:
    """Split a finite pool for K classes at once into train, val and test row numbers, each (K, n).

    The keys may differ only in their label.
    """
    train, val, test = counts
    if train + val > size:
        raise ValueError(
            f"{train} training and {val} val rows were requested of {size} combinations of factors"
        )
    test = min(test, size - train - val)
    labels = [key.label for key in keys]
    rows = permutations(keys[0].seed, Purpose.SPLIT, labels, size, substream=keys[0].band)
    cuts = (rows[:, test + val : test + val + train], rows[:, test : test + val], rows[:, :test])
    return [np.sort(part, axis=1) for part in cuts]


def split_sampled(train: Space, test: Space, counts: Counts, key: ClassKey) -> SplitFactors:
    """Split a class with sampled training rows: test rows come first, and none of them is trained on."""
    tests = take_test_rows(test, counts.test, key, [])
    vals = _take(train, counts.val, key, Purpose.TEST_FACTORS, 1, [tests])
    trains = _take(train, counts.train, key, Purpose.FACTORS, key.visit, [tests, vals])
    return SplitFactors(trains, vals, tests)


def take_test_rows(space: Space, count: int, key: ClassKey, avoid: list[Factors]) -> Factors:
    """Take the test rows of a class from a space; none of them is in `avoid`."""
    return _take(space, count, key, Purpose.TEST_FACTORS, 0, avoid)


def _take(
    space: Space, count: int, key: ClassKey, purpose: Purpose, visit: int, avoid: list[Factors]
) -> Factors:
    """Take rows of a space that occur in none of `avoid`: shuffled if it is finite, else sampled."""
    taken = np.concatenate([_codes(table) for table in avoid]) if avoid else None
    if space.size is None:
        return _draw(space, count, key, purpose, visit, taken)
    points = space.points()
    rows = permutations(key.seed, Purpose.SPLIT, [key.label], space.size, substream=key.band)[0]
    if taken is not None:
        rows = rows[~np.isin(_codes(points)[rows], taken)]
    if len(rows) < count:
        raise ValueError(
            f"class {key.label} has {len(rows)} test rows that are not training rows, but the split "
            f"asks for {count}; give a larger test space or ask for fewer training or test rows"
        )
    return points.take(np.sort(rows[:count]))


def _draw(
    space: Space,
    count: int,
    key: ClassKey,
    purpose: Purpose,
    visit: int,
    taken: NDArray[np.void] | None,
) -> Factors:
    """Sample rows, and resample those that are taken."""
    seed = int(random_uint64(key.seed, purpose, visit, key.band)[0])
    rows = np.arange(count, dtype=np.uint64)
    out = space.sample(uniform(seed, purpose, key.label, rows, count=UNIFORMS_PER_SAMPLE))
    if taken is None:
        return out
    collisions = np.flatnonzero(np.isin(_codes(out), taken))
    for attempt in range(1, _MAX_DRAWS):
        if not len(collisions):
            return out
        numbers = rows[collisions] + np.uint64(count * attempt)
        resampled = space.sample(
            uniform(seed, purpose, key.label, numbers, count=UNIFORMS_PER_SAMPLE)
        )
        for column, new in zip(out, resampled, strict=True):
            column[collisions] = new
        collisions = collisions[np.isin(_codes(resampled), taken)]
    raise ValueError(
        f"found no training rows of class {key.label} that are not test rows in {_MAX_DRAWS} draws; "
        "make the space larger or the test set smaller"
    )


def _codes(factors: Factors) -> NDArray[np.void]:
    """Encode each row as one comparable value, rounded to 9 digits."""
    table = np.stack([np.round(np.asarray(c, float), 9) + 0.0 for c in factors], axis=1)
    return np.ascontiguousarray(table).view(np.dtype((np.void, table.shape[1] * 8)))[:, 0]


def split_held_out(space: Space, held_out: Space) -> tuple[Space, Space]:
    """Split a space into what may be trained on and what is only tested."""
    train = Difference(space, held_out)
    if not isinstance(space, Product) or not isinstance(held_out, Product):
        return train, Difference(space, train)
    both = space.intersect(held_out)
    if both is None:
        raise ValueError(
            "held_out holds no combination of the space of factors; hold out some of it"
        )
    return train, both


def imbalance_mask(
    seed: int, task: int, labels: NDArray[np.int64], ratio: float
) -> NDArray[np.bool_]:
    """Return which training rows a task keeps: class sizes fall geometrically from 1 to 1 / ratio."""
    present = np.unique(labels)
    rank = permutations(seed, Purpose.IMBALANCE, [task], len(present))[0]
    keep = np.zeros(len(labels), bool)
    for label, place in zip(present, rank.tolist(), strict=True):
        rows = np.flatnonzero(labels == label)
        fraction = ratio ** (-place / max(len(present) - 1, 1))
        order = permutations(seed, Purpose.IMBALANCE, [task], len(rows), substream=1 + place)[0]
        keep[rows[order[: max(1, round(len(rows) * fraction))]]] = True
    return keep
