"""A table of points: a learner's codes and the true factors, checked, binned and split.

A factor has one of three types: "discrete", a class among others, whatever its number; "continuous", a
number on a line; "circular", an angle in radians. Every type has labels: the values of a discrete
factor, equal bins of the others. Codes are scaled to mean 0 and deviation 1, so that no metric depends
on their units.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from everlearn.core.random import check_seed
from everlearn.core.validate import check_int
from everlearn.metrics.disentanglement.bins import bin_circle, bin_line
from everlearn.metrics.measured import Floats, Ints

TYPES = ("discrete", "continuous", "circular")


class Purpose(IntEnum):
    """What random numbers are drawn for; two purposes share none."""

    SPLIT = 1
    TIES = 2
    TREES = 3
    BATCHES = 4
    PAIRS = 5


class Factor(NamedTuple):
    """One factor of all points.

    Attributes:
        name: of the factor.
        type: one of TYPES.
        values: (P,)
        labels: (P,) number of the value, or of its bin.
    """

    name: str
    type: str
    values: Floats
    labels: Ints

    @property
    def targets(self) -> Floats:
        """Targets of a regression, (P, D): the value, or cosine and sine of an angle."""
        if self.type == "circular":
            return np.stack([np.cos(self.values), np.sin(self.values)], axis=1)
        return self.values[:, None]


class Points(NamedTuple):
    """Codes and factors of P points.

    Attributes:
        codes: (P, L), each of mean 0 and deviation 1 over all points, or 0 where it never varies.
        bins: (P, L) bin of each code.
        deviations: (L,) of the codes as they were given.
        factors: K of them.
    """

    codes: Floats
    bins: Ints
    deviations: Floats
    factors: tuple[Factor, ...]

    def take(self, rows: Ints) -> Points:
        """Pick some of the points."""
        factors = (Factor(f.name, f.type, f.values[rows], f.labels[rows]) for f in self.factors)
        return Points(self.codes[rows], self.bins[rows], self.deviations, tuple(factors))


def tabulate(
    codes: ArrayLike,
    factors: Mapping[str, ArrayLike],
    types: Mapping[str, str],
    bins: int = 20,
) -> Points:
    """Check and bin codes (P, L) and factors (P,) each.

    Args:
        bins: of equal width, of every code and of every factor that is not discrete.
    """
    check_int(bins, "bins", 2, 10**4)
    table = _check_codes(codes)
    if set(factors) != set(types) or len(factors) < 2:
        found = f"factors {sorted(factors)} and types {sorted(types)}"
        raise ValueError(f"two factors or more are needed, with a type for each; found {found}")
    known = tuple(_factor(name, factors[name], types[name], len(table), bins) for name in factors)
    scaled, deviations = _scale(table)
    return Points(scaled, bin_line(table, bins), deviations, known)


def split(points: Points, seed: int) -> tuple[Points, Points]:
    """Shuffle the points; return two thirds for training and one third for testing."""
    order = generator(seed, Purpose.SPLIT).permutation(len(points.codes))
    cut = len(order) * 2 // 3
    train = points.take(order[:cut])
    test = points.take(order[cut:])
    for known, held in zip(train.factors, test.factors, strict=True):
        both = len(np.intersect1d(known.labels, held.labels))
        if both < 2:
            raise ValueError(
                f"{len(order)} points are too few: the training and test parts share "
                f"{both} values of factor {known.name!r}, and 2 are needed; give more points"
            )
    return train, test


def generator(seed: int, purpose: Purpose) -> np.random.Generator:
    """Return the random generator of one purpose."""
    key = np.array([check_seed(seed), purpose], np.uint64)
    return np.random.Generator(np.random.Philox(key=key))


def top_gap(scores: Floats) -> Floats:
    """Return the gap between the best code and the second, for scores (L, K): (K,)."""
    ranked: Floats = np.sort(scores, axis=0)
    gap: Floats = ranked[-1] - ranked[-2]
    return gap


def _check_codes(codes: ArrayLike) -> Floats:
    table = np.asarray(codes, np.float64)
    if table.ndim != 2 or table.shape[1] < 2 or len(table) == 0:
        raise ValueError(f"codes must be (points, two codes or more), found shape {table.shape}")
    if not np.isfinite(table).all():
        raise ValueError(f"codes must be finite, found {(~np.isfinite(table)).sum()} that are not")
    return table


def _factor(name: str, values: ArrayLike, factor_type: str, count: int, bins: int) -> Factor:
    """Check a factor and label its values."""
    if factor_type not in TYPES:
        raise ValueError(
            f"unknown type {factor_type!r} of factor {name!r}; known: {', '.join(TYPES)}"
        )
    column = np.asarray(values)
    if column.shape != (count,):
        raise ValueError(f"factor {name!r} must have shape ({count},), found {column.shape}")
    if column.dtype.kind not in "biuf" or not np.isfinite(column).all():
        raise ValueError(f"factor {name!r} must be finite numbers, found others among them")
    numbers = column.astype(np.float64)
    labels = _labels(numbers, factor_type, bins)
    if np.ptp(labels) == 0:
        raise ValueError(f"factor {name!r} never varies, so nothing can encode it; leave it out")
    if factor_type == "discrete" and len(np.unique(labels)) == count:
        raise ValueError(f"factor {name!r} has no value twice; declare it continuous, not discrete")
    return Factor(name, factor_type, numbers, labels)


def _labels(values: Floats, factor_type: str, bins: int) -> Ints:
    if factor_type == "discrete":
        return np.unique(values, return_inverse=True)[1].astype(np.int64)
    return bin_circle(values, bins) if factor_type == "circular" else bin_line(values, bins)


def _scale(codes: Floats) -> tuple[Floats, Floats]:
    """Scale codes to mean 0 and deviation 1; return them and the deviations they had."""
    low = codes.min(axis=0)
    width = np.ptp(codes, axis=0)
    # First to 0 .. 1: the mean of equal numbers may differ from them in the last bit, their range not.
    unit = (codes - low) / np.where(width > 0, width, 1.0)
    deviation = unit.std(axis=0)
    scaled = (unit - unit.mean(axis=0)) / np.where(width > 0, deviation, 1.0)
    return scaled, deviation * width
