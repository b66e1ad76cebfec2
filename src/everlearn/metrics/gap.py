"""The stability gap: how far an earlier task falls when the next one begins, and for how long."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from everlearn.border import check_number
from everlearn.metrics.probes import Series
from everlearn.metrics.rows import NotMeasuredError


def stability_gap(series: Series, switch: int) -> float:
    """Subtract a task's lowest accuracy while task `switch` is learned from the last one before."""
    before, during = _sides(series, switch)
    return float(before.accuracy[-1] - during.accuracy.min())


def recovery(
    series: Series, ends: Mapping[int, int], switch: int, share: float = 0.95
) -> int | None:
    """Count the steps from the switch until a share of the accuracy before it is regained.

    0 where it was never lost; None where, after the lowest point, it is not regained while
    task `switch` is learned.

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


def _sides(series: Series, switch: int) -> tuple[Series, Series]:
    """What was measured before a switch and while the task after it was learned."""
    before = series.where(series.learned < switch)
    during = series.where(series.learned == switch)
    if not (len(before.step) and len(during.step)):
        raise NotMeasuredError(
            f"no probe of this task both before and while task {switch} is learned"
        )
    return before, during
