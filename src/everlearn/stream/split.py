"""Train, val and test as a function of (seed, class, row).

A class is parted by its own key, not its task's: where a class comes back in a later task, an image
that was held back for testing stays held back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everlearn.factors import UNIFORMS, Factors, Minus, Product, Space
from everlearn.philox import Purpose, permutations, uniform, words

_MOST_TRIES = 64


class Counts(NamedTuple):
    """Rows a class."""

    train: int
    val: int
    test: int


class Key(NamedTuple):
    """What the rows of a class follow from; `visit` changes where drawn rows may be new each time."""

    seed: int
    label: int
    band: int
    visit: int


class Parts(NamedTuple):
    """The factors of one class, parted."""

    train: Factors
    val: Factors
    test: Factors


def check_split(split: Sequence[float]) -> tuple[float, float, float]:
    """Return three counts or three shares, or say what is allowed."""
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
            raise ValueError(f"split {parts} could be shares or counts; write 1.0 for all rows")
        return int(parts[0]), int(parts[1]), int(parts[2])
    if sum(parts) > 1 + 1e-9:
        raise ValueError(
            f"split must be three whole numbers (rows a task) or three shares that add up to 1 at "
            f"most, found {parts}"
        )
    return float(parts[0]), float(parts[1]), float(parts[2])


def is_counts(split: Sequence[float]) -> bool:
    """Whether a split counts rows (6000, 150, 100) rather than sharing them (0.96, 0.024, 0.016)."""
    return all(isinstance(v, int) for v in split)


def count_rows(
    split: tuple[float, float, float], classes: int, pool: int, test_pool: int | None = None
) -> Counts:
    """Rows a class: counts are divided among the classes, shares are taken of the pool.

    A share that is not zero gives one row at least.

    Args:
        test_pool: size of a test pool of its own, or None where test rows come out of the pool.
    """
    if is_counts(split):
        train, val, test = (int(part) // classes for part in split)
        return Counts(train, val, test)
    val, test = _share(split[1], pool), _share(split[2], pool)
    train = pool - val - test if sum(split) > 1 - 1e-9 else _share(split[0], pool)
    return Counts(train, val, test if test_pool is None else _share(split[2], test_pool))


def _share(share: float, pool: int) -> int:
    return max(round(share * pool), 1) if share > 0 else 0


def shuffle_finite(size: int, counts: Counts, keys: Sequence[Key]) -> list[NDArray[np.int64]]:
    """Part a finite pool for several classes at once: row numbers (K, n) of train, val and test.

    The keys may differ in their label alone.
    """
    train, val, test = counts
    if train + val > size:
        raise ValueError(
            f"{train} training and {val} val rows were asked for, of {size} combinations"
        )
    test = min(test, size - train - val)
    labels = [key.label for key in keys]
    rows = permutations(keys[0].seed, Purpose.SPLIT, labels, size, lane=keys[0].band)
    cuts = (rows[:, test + val : test + val + train], rows[:, test : test + val], rows[:, :test])
    return [np.sort(part, axis=1) for part in cuts]


def part_drawn(train: Space, test: Space, counts: Counts, key: Key) -> Parts:
    """Part a class whose training rows are drawn: test rows first, none of them trained on."""
    tests = take_tests(test, counts.test, key, [])
    vals = _take(train, counts.val, key, Purpose.TEST_FACTORS, 1, [tests])
    trains = _take(train, counts.train, key, Purpose.FACTORS, key.visit, [tests, vals])
    return Parts(trains, vals, tests)


def take_tests(space: Space, count: int, key: Key, avoid: list[Factors]) -> Factors:
    """Take the test rows of a class from a space of their own; none of them is in `avoid`."""
    return _take(space, count, key, Purpose.TEST_FACTORS, 0, avoid)


def _take(
    space: Space, count: int, key: Key, purpose: Purpose, visit: int, avoid: list[Factors]
) -> Factors:
    """Take rows of a space that occur in none of `avoid`: listed in a shuffled order, or drawn."""
    taken = np.concatenate([_codes(table) for table in avoid]) if avoid else None
    if space.size is None:
        return _draw(space, count, key, purpose, visit, taken)
    points = space.points()
    rows = permutations(key.seed, Purpose.SPLIT, [key.label], space.size, lane=key.band)[0]
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
    key: Key,
    purpose: Purpose,
    visit: int,
    taken: NDArray[np.void] | None,
) -> Factors:
    """Draw rows; one that is taken is drawn again."""
    seed = int(words(key.seed, purpose, visit, key.band)[0])
    rows = np.arange(count, dtype=np.uint64)
    out = space.sample(uniform(seed, purpose, key.label, rows, count=UNIFORMS))
    if taken is None:
        return out
    wrong = np.flatnonzero(np.isin(_codes(out), taken))
    for attempt in range(1, _MOST_TRIES):
        if not len(wrong):
            return out
        numbers = rows[wrong] + np.uint64(count * attempt)
        again = space.sample(uniform(seed, purpose, key.label, numbers, count=UNIFORMS))
        for column, new in zip(out, again, strict=True):
            column[wrong] = new
        wrong = wrong[np.isin(_codes(again), taken)]
    raise ValueError(
        f"found no training rows of class {key.label} that are not test rows in {_MOST_TRIES} draws; "
        "make the space larger or the test set smaller"
    )


def _codes(factors: Factors) -> NDArray[np.void]:
    """One comparable item a row."""
    table = np.stack([np.round(np.asarray(c, float), 9) + 0.0 for c in factors], axis=1)
    return np.ascontiguousarray(table).view(np.dtype((np.void, table.shape[1] * 8)))[:, 0]


def held_back(space: Space, held_out: Space) -> tuple[Space, Space]:
    """Part a space into what may be trained on and what is only tested."""
    train = Minus(space, held_out)
    if not isinstance(space, Product) or not isinstance(held_out, Product):
        return train, Minus(space, train)
    both = space.meet(held_out)
    if both is None:
        raise ValueError(
            "held_out holds no combination of the space of factors; hold out some of it"
        )
    return train, both


def thin(seed: int, task: int, labels: NDArray[np.int64], ratio: float) -> NDArray[np.bool_]:
    """Tell which training rows an imbalanced task keeps: classes shrink by equal ratios to 1 / ratio."""
    present = np.unique(labels)
    rank = permutations(seed, Purpose.IMBALANCE, [task], len(present))[0]
    keep = np.zeros(len(labels), bool)
    for label, place in zip(present, rank.tolist(), strict=True):
        mine = np.flatnonzero(labels == label)
        share = ratio ** (-place / max(len(present) - 1, 1))
        order = permutations(seed, Purpose.IMBALANCE, [task], len(mine), lane=1 + place)[0]
        keep[mine[order[: max(1, round(len(mine) * share))]]] = True
    return keep
