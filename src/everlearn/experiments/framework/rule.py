"""The rule behind every verdict: an interval over seeds beside a published number or a threshold."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from everlearn.metrics import MIN_SEEDS, aggregate, compare_shared, wilson

# An interval this close to the published fraction is equal, unless it is wholly beyond the printed digits.
EQUIVALENCE = 0.01
_CONFIDENCE = 0.95
_DIGITS = 9  # 1.0 - 0.995 is slightly more than 0.005
Values = Mapping[int, float]  # seed -> number


class Lead(NamedTuple):
    """The interval over seeds by which a statement is on the right side of its threshold.

    Attributes:
        low: lower end; minus infinity with fewer than MIN_SEEDS.
        high: upper end; infinity with fewer than MIN_SEEDS.
        seeds: number of seeds, of the group that has fewer.
    """

    low: float
    high: float
    seeds: int


def judge_number(lead: Lead, digits: int, margin: float = EQUIVALENCE) -> str:
    """Compare a number for which higher is better with a published one.

    Args:
        lead: ours minus the published number.
        digits: digits after the point that the paper prints, so it is known to half of the last one.
        margin: an interval within this of the published number is equal, unless all of it is above or
            below what is printed as that number, which is better or worse.
    """
    half = 0.5 * 10.0**-digits
    low = round(lead.low, _DIGITS)
    high = round(lead.high, _DIGITS)
    if low > half:
        return "better"
    if high < -half:
        return "worse"
    widest = max(margin, half)
    return "equal" if -widest <= low and high <= widest else "undecided"


def judge_leads(leads: Sequence[Lead]) -> str:
    """Judge a statement that holds if every lead is above 0: equal, worse or undecided."""
    if all(round(lead.low, _DIGITS) > 0 for lead in leads):
        return "equal"
    return "worse" if any(round(lead.high, _DIGITS) < 0 for lead in leads) else "undecided"


def lead_above(values: Values, bound: float) -> Lead | None:
    """Return by how much numbers exceed a bound; None without numbers."""
    if not values:
        return None
    return _lead_of([value - bound for value in values.values()])


def widen_by_draws(lead: Lead, fraction: float, bound: float, draws: int) -> Lead:
    """Return a lead that is at least as uncertain as a fraction of so many independent draws.

    Equal fractions of all seeds have an interval of width 0, which claims more than the draws can tell.
    """
    low, high = wilson(round(fraction * draws), draws, _CONFIDENCE)
    return lead._replace(
        low=min(lead.low, float(low) - bound), high=max(lead.high, float(high) - bound)
    )


def lead_below(values: Values, bound: float) -> Lead | None:
    """Return by how much numbers fall short of a bound; None without numbers."""
    return lead_above({seed: -value for seed, value in values.items()}, -bound)


def lead_over(first: Values, second: Values, by: float = 0.0) -> Lead | None:
    """Return by how much the first exceeds the second, less `by`; None where one has no numbers.

    Differences are paired over the seeds of both if there are at least MIN_SEEDS; otherwise Welch's
    interval of two independent groups is taken.
    """
    if not first or not second:
        return None
    found = compare_shared(first, second, _CONFIDENCE)
    if found:
        return Lead(found.spread.low - by, found.spread.high - by, found.spread.seeds)
    fewest = min(len(first), len(second))
    if fewest < MIN_SEEDS:
        return _unknown(fewest)
    low, high = welch_interval(list(first.values()), list(second.values()))
    return Lead(low - by, high - by, fewest)


def lead_of_share(successes: int, seeds: int, share: float) -> Lead | None:
    """Return by how much the share of seeds that succeed exceeds a share, by Wilson's interval."""
    if not seeds:
        return None
    if seeds < MIN_SEEDS:
        return _unknown(seeds)
    low, high = wilson(successes, seeds, _CONFIDENCE)
    return Lead(float(low) - share, float(high) - share, seeds)


def seeds_to_show(share: float) -> int:
    """Return how many seeds must all succeed before Wilson's interval is above a share below 1."""
    counts = itertools.count(MIN_SEEDS)
    return next(n for n in counts if wilson(n, n, _CONFIDENCE)[0] > share)


def welch_interval(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """Return the interval of the difference of two means with unequal variances (Welch 1947)."""
    errors = [np.var(values, ddof=1) / len(values) for values in (first, second)]
    difference = float(np.mean(first) - np.mean(second))
    total = sum(errors)
    if total == 0:
        return difference, difference
    freedom = total**2 / sum(
        error**2 / (len(values) - 1) for error, values in zip(errors, (first, second), strict=True)
    )
    half = float(special.stdtrit(freedom, (1 + _CONFIDENCE) / 2) * total**0.5)
    return difference - half, difference + half


def _lead_of(values: Sequence[float]) -> Lead:
    if len(values) < MIN_SEEDS:
        return _unknown(len(values))
    spread = aggregate(values, _CONFIDENCE)
    return Lead(spread.low, spread.high, len(values))


def _unknown(seeds: int) -> Lead:
    return Lead(-np.inf, np.inf, seeds)
