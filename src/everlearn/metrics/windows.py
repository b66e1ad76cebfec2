"""The largest fall and rise of accuracy within a window of consecutive evaluations."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from everlearn.border import check_whole
from everlearn.metrics.probes import Series
from everlearn.metrics.rows import Floats, mean_of_measured


def windowed_forgetting(series: Mapping[int, Series], window: int) -> float:
    """Average over the tasks, the current one too, their largest falls (WF)."""
    falls = [largest_fall(values, window) for values in _lives(series)]
    return mean_of_measured(falls, "a probe of a task while or after it was learned")


def windowed_plasticity(series: Mapping[int, Series], window: int) -> float:
    """Average over the tasks, the current one too, their largest rises (WP)."""
    rises = [largest_rise(values, window) for values in _lives(series)]
    return mean_of_measured(rises, "a probe of a task while or after it was learned")


def largest_fall(values: ArrayLike, window: int) -> float:
    """Find the largest fall within so many consecutive values; 0 where they never fall."""
    check_whole(window, "window", 2, 2**31)
    array = np.asarray(values, np.float64)
    return float((_running_max(array, window) - array).max(initial=0.0))


def largest_rise(values: ArrayLike, window: int) -> float:
    """Find the largest rise within so many consecutive values; 0 where they never rise."""
    return largest_fall(-np.asarray(values, np.float64), window)


def _running_max(values: Floats, window: int) -> Floats:
    """Maximum of each value and the window - 1 before it, by doubling the reach."""
    best, reach = values.copy(), 1
    while reach < min(window, len(values)):
        shift = min(reach, window - reach)
        best[shift:] = np.maximum(best[shift:], best[:-shift])
        reach += shift
    return best


def _lives(series: Mapping[int, Series]) -> list[Floats]:
    # Task 0 begins with the evaluation before the first step. For later tasks that one lies far
    # back and is no neighbour of the next.
    lives = [s.where((s.learned >= task) | (task == 0)).accuracy for task, s in series.items()]
    return [values for values in lives if len(values)]
