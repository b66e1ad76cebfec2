"""Several seeds: their spread, and two methods compared over the same seeds."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple, TypeVar

import numpy as np
from scipy import special

from everlearn.core.validate import check_finite, check_number
from everlearn.metrics.measured import Floats

MIN_SEEDS = 3  # Student's interval of two is 12.7 standard errors wide, which says nothing
MAX_SEEDS = 40  # for which all choices of signs can be enumerated: 2^20 sums for each half
Number = TypeVar("Number", float, Floats)


class Spread(NamedTuple):
    """Mean and standard deviation (n - 1) over seeds, and Student's interval for the mean."""

    mean: float
    sd: float
    low: float
    high: float
    seeds: int


class Comparison(NamedTuple):
    """First minus second method over the same seeds.

    Attributes:
        spread: of the differences.
        t_test: p of the two-sided paired t-test.
        sign_flip: p of the exact two-sided sign-flip test.
    """

    spread: Spread
    t_test: float
    sign_flip: float


def mean_or_none(values: Collection[float]) -> float | None:
    """Return the mean over seeds; None without any."""
    return sum(values) / len(values) if values else None


def aggregate(values: Collection[float], confidence: float = 0.95) -> Spread:
    """Summarise one number for each of two seeds or more."""
    check_number(confidence, "confidence", 0.0, 1 - 1e-12)
    array = np.array([check_finite(value, "a seed's value") for value in values])
    count = len(array)
    if count < 2:
        raise ValueError(f"a spread needs 2 seeds or more, found {count}; run more seeds")
    mean = float(array.mean())
    sd = float(array.std(ddof=1))
    half = half_width(sd, count, confidence)
    return Spread(mean, sd, mean - half, mean + half, count)


def half_width(sd: Number, count: int, confidence: float = 0.95) -> Number:
    """Return half of Student's interval for the mean of `count` values with deviation `sd` (n - 1)."""
    scale: float = special.stdtrit(count - 1, (1 + confidence) / 2) / count**0.5
    return scale * sd


def compare(
    first: Mapping[int, float], second: Mapping[int, float], confidence: float = 0.95
) -> Comparison:
    """Compare two methods by their numbers for the same seeds.

    Args:
        first: seed -> number.
        second: seed -> number, for the same seeds.
    """
    if first.keys() != second.keys():
        found = f"{sorted(first)} and {sorted(second)}"
        raise ValueError(f"both methods must have run the same seeds, found {found}")
    if len(first) > MAX_SEEDS:
        raise ValueError(f"a comparison takes up to {MAX_SEEDS} seeds, found {len(first)}")
    differences = np.array([first[seed] - second[seed] for seed in sorted(first)], np.float64)
    spread = aggregate(differences.tolist(), confidence)
    return Comparison(spread, _t_test(spread), _sign_flip(differences))


def compare_shared(
    first: Mapping[int, float], second: Mapping[int, float], confidence: float = 0.95
) -> Comparison | None:
    """Compare two methods over the seeds of both, MAX_SEEDS at most; None of fewer than MIN_SEEDS."""
    shared = sorted(first.keys() & second.keys())[:MAX_SEEDS]
    if len(shared) < MIN_SEEDS:
        return None
    left = {seed: first[seed] for seed in shared}
    right = {seed: second[seed] for seed in shared}
    return compare(left, right, confidence)


def _t_test(spread: Spread) -> float:
    if spread.sd == 0:
        return 1.0 if spread.mean == 0 else 0.0
    t = spread.mean / spread.sd * spread.seeds**0.5
    return 2 * float(special.stdtr(spread.seeds - 1, -abs(t)))


def _sign_flip(differences: Floats) -> float:
    """Return the share of all 2^n choices of signs with a sum as far from 0 as the one found."""
    # Meet in the middle: every sum is one of the first half plus one of the second.
    half = len(differences) // 2
    left = _signed_sums(differences[:half])
    right = np.sort(_signed_sums(differences[half:]))
    # Sums that are equal on paper may differ in their last bits.
    far = abs(differences.sum()) - 1e-9 * abs(differences).sum()
    over = len(right) - np.searchsorted(right, far - left, "left")
    under = np.searchsorted(right, -far - left, "right")
    return min(1.0, float((over + under).sum()) / (len(left) * len(right)))


def _signed_sums(values: Floats) -> Floats:
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + value, sums - value])
    return sums
