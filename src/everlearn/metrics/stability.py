"""Stability while training: worst-case accuracies of earlier tasks (De Lange et al. 2023).

Minima over small subsets are biased low: report the size of the subset with them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from everlearn.core.validate import check_int
from everlearn.metrics.measured import NotMeasuredError, mean_of_measured
from everlearn.metrics.probes import Series


def min_accuracy(series: Mapping[int, Series], ends: Mapping[int, int]) -> float:
    """Average the lowest accuracies of the earlier tasks since they ended (min-ACC).

    Args:
        ends: the step of each task's last update; the evaluation there is the first that counts.
    """
    return mean_of_measured(_minima(series, ends), "a probe of an earlier task since its end")


def worst_case_accuracy(series: Mapping[int, Series], ends: Mapping[int, int]) -> float:
    """Average the current task's last accuracy with the earlier tasks' minima (WC-ACC)."""
    current = _current(series)
    last = [
        s.where(s.learned == current).accuracy[-1:] for task, s in series.items() if task == current
    ]
    needed = "a probe of the current task or of an earlier one since its end"
    return mean_of_measured(np.concatenate([*last, _minima(series, ends)]), needed)


def learning_curve_area(series: Mapping[int, Series], beta: int = 10) -> float:
    """Average each task's first `beta` accuracies while learning it, or all if they are fewer."""
    check_int(beta, "beta", 1, 2**31)
    starts = [s.where(s.learned == task).accuracy[:beta] for task, s in series.items()]
    means = [values.mean() for values in starts if len(values)]
    return mean_of_measured(means, "a probe of a task while it was learned")


def _minima(series: Mapping[int, Series], ends: Mapping[int, int]) -> list[float]:
    current = _current(series)
    earlier = {task: s for task, s in series.items() if task < current}
    missing = sorted(earlier.keys() - ends.keys())
    if missing:
        raise NotMeasuredError(f"no task row says at which step tasks {missing} ended; add them")
    since = [s.where(s.step >= ends[task]).accuracy for task, s in earlier.items()]
    return [float(values.min()) for values in since if len(values)]


def _current(series: Mapping[int, Series]) -> int:
    return max((int(s.learned.max()) for s in series.values()), default=-1)
