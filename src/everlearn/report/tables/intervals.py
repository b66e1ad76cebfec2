"""Intervals of means over seeds; their kind depends on the number of seeds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everlearn.metrics import MIN_SEEDS, half_width, wilson

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_ONE_SEED = "one seed: Wilson's 95 % interval of the test images"
_TWO_SEEDS = "two seeds: from the lower to the higher"
_MORE_SEEDS = "three or more seeds: Student's 95 % interval of the mean"


class MeanInterval(NamedTuple):
    """Means and the ends of their intervals, arrays of one shape."""

    mean: Floats
    low: Floats
    high: Floats


def interval_over_seeds(values: Floats) -> MeanInterval:
    """Average (S, N) over S seeds, with Student's interval, or the range of two seeds."""
    count = len(values)
    mean = values.mean(axis=0)
    if count < MIN_SEEDS:
        return MeanInterval(mean, values.min(axis=0), values.max(axis=0))
    half = half_width(values.std(axis=0, ddof=1), count)
    return MeanInterval(mean, mean - half, mean + half)


def interval_over_images(accuracy: Floats, correct: Ints, total: Ints) -> MeanInterval:
    """Add Wilson's intervals to accuracies (N,) of one seed, from counts pooled over tasks."""
    low, high = wilson(correct, total)
    # A mean over tasks of different sizes need not equal the pooled fraction.
    return MeanInterval(accuracy, np.minimum(low, accuracy), np.maximum(high, accuracy))


def describe_intervals(seed_counts: set[int]) -> str:
    """Explain the intervals of groups with these numbers of seeds."""
    used = {
        _ONE_SEED: 1 in seed_counts,
        _TWO_SEEDS: 2 in seed_counts,
        _MORE_SEEDS: max(seed_counts, default=0) >= MIN_SEEDS,
    }
    return "; ".join(text for text, is_used in used.items() if is_used)
