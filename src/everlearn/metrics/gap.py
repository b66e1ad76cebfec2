"""The stability gap: how far an earlier task falls when the next one begins, and for how long."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from everlearn.core.validate import check_number
from everlearn.metrics.measured import Floats, NotMeasuredError, mean_of_measured
from everlearn.metrics.probes import Series


def stability_gap(series: Series, switch: int) -> float:
    """Subtract a task's lowest accuracy while task `switch` is learned from the last one before."""
    before, during = _sides(series, switch)
    return float(before.accuracy[-1] - during.accuracy.min())


def mean_stability_gap(series: Mapping[int, Series]) -> float:
    """Average the gaps of all earlier tasks at all switches that were probed on both sides."""
    gaps = [_gaps(task, s.where(s.learned >= -1)) for task, s in series.items()]
    needed = "a probe of a task both before and while a later one is learned"
    return mean_of_measured(np.concatenate([np.empty(0), *gaps]), needed)


def recovery(
    series: Series, ends: Mapping[int, int], switch: int, share: float = 0.95
) -> int | None:
    """Count the steps from the switch until a share of the accuracy before it is regained.

    Return 0 if it was never lost, and None if it is not regained after the lowest point while task
    `switch` is learned.

    Args:
        series: of a task before `switch`.
        ends: the step of each task's last update.
    """
    check_number(share, "share", 0.0, 1.0)
    before, during = _sides(series, switch)
    # 0.8 * 0.75 is a little over 0.6: without the margin, 60 of 100 would not regain 75.
    enough = during.accuracy >= share * before.accuracy[-1] - 1e-12
    if enough.all():
        return 0
    if switch - 1 not in ends:
        raise NotMeasuredError(f"no task row says at which step task {switch - 1} ended; add it")
    regained = enough & (np.arange(len(enough)) > during.accuracy.argmin())
    steps = during.step[regained] - ends[switch - 1]
    return int(steps[0]) if len(steps) else None


def _gaps(task: int, series: Series) -> Floats:
    """Return the stability gaps (K,) of a task at every later switch, all at once."""
    if not len(series.step):
        return np.empty(0)
    switch, start = np.unique(series.learned, return_index=True)
    lowest = np.minimum.reduceat(series.accuracy, start)
    later = (switch > task) & (start > 0)
    return series.accuracy[start[later] - 1] - lowest[later]


def _sides(series: Series, switch: int) -> tuple[Series, Series]:
    """Split a series into before a switch and while the task after it was learned."""
    before = series.where(series.learned < switch)
    during = series.where(series.learned == switch)
    if not (len(before.step) and len(during.step)):
        raise NotMeasuredError(
            f"no probe of this task both before and while task {switch} is learned"
        )
    return before, during
