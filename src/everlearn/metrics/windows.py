"""The largest fall and rise of accuracy within a window of consecutive evaluations."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike
from scipy.ndimage import maximum_filter1d

from everlearn.core.validate import check_int
from everlearn.metrics.measured import Floats, mean_of_measured
from everlearn.metrics.probes import Series


def windowed_forgetting(series: Mapping[int, Series], window: int) -> float:
    """Average the largest falls of all tasks, including the current one (WF)."""
    falls = [largest_fall(values, window) for values in _since_learned(series)]
    return mean_of_measured(falls, "a probe of a task while or after it was learned")


def windowed_plasticity(series: Mapping[int, Series], window: int) -> float:
    """Average the largest rises of all tasks, including the current one (WP)."""
    rises = [largest_rise(values, window) for values in _since_learned(series)]
    return mean_of_measured(rises, "a probe of a task while or after it was learned")


def largest_fall(values: ArrayLike, window: int) -> float:
    """Return the largest fall within `window` consecutive values; 0 if they never fall."""
    check_int(window, "window", 2, 2**31)
    array = np.asarray(values, np.float64)
    if not len(array):
        return 0.0
    size = min(window, len(array))
    # A window that ends at each value: shifted by half its size to the left.
    highest = maximum_filter1d(array, size, mode="nearest", origin=(size - 1) // 2)
    return float((highest - array).max(initial=0.0))


def largest_rise(values: ArrayLike, window: int) -> float:
    """Return the largest rise within `window` consecutive values; 0 if they never rise."""
    return largest_fall(-np.asarray(values, np.float64), window)


def _since_learned(series: Mapping[int, Series]) -> list[Floats]:
    """Return each task's accuracies since it began to be learned."""
    # Task 0 begins with the evaluation before the first step. For later tasks that one lies far
    # back and is no neighbour of the next.
    accuracies = [s.where((s.learned >= task) | (task == 0)).accuracy for task, s in series.items()]
    return [values for values in accuracies if len(values)]
