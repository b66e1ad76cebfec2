"""How sure a mean over seeds is, by the number of seeds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everlearn.metrics import student, wilson

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ONE, TWO, MORE = (
    "one seed: Wilson's 95 % interval of the test images",
    "two seeds: the lower to the higher",
    "three seeds or more: Student's 95 % interval of the mean",
)


class Span(NamedTuple):
    """Means and the ends of their intervals, arrays of one shape."""

    mean: Floats
    low: Floats
    high: Floats


def over_seeds(values: Floats) -> Span:
    """Average (S, N) over S seeds, with Student's interval; of two seeds from one to the other.

    With one degree of freedom Student's interval is 12.7 standard errors wide: of no use.
    """
    count, mean = len(values), values.mean(axis=0)
    if count < 3:
        return Span(mean, values.min(axis=0), values.max(axis=0))
    half = student.margin(values.std(axis=0, ddof=1), count)
    return Span(mean, mean - half, mean + half)


def over_images(accuracy: Floats, right: Ints, total: Ints) -> Span:
    """Bound accuracies (N,) of one seed by their counts, pooled over the tasks."""
    low, high = wilson(right, total)
    # A mean over tasks of different sizes need not be the pooled share.
    return Span(accuracy, np.minimum(low, accuracy), np.maximum(high, accuracy))


def describe(counts: set[int]) -> str:
    """Say what the intervals are, for groups of so many seeds."""
    some = {ONE: 1 in counts, TWO: 2 in counts, MORE: max(counts, default=0) > 2}
    return "; ".join(words for words, there in some.items() if there)
