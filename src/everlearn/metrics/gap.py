"""The stability gap: how far an earlier task falls when the next one begins, and for how long.

A gap is a loss that is regained. The number is comparable only among learners that learned their tasks and
regain what they lose: for others it is what they never knew, or forgetting. `temporary_gap` refuses those.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from everlearn.core.validate import check_number
from everlearn.metrics.measured import Floats, Ints, NotMeasuredError
from everlearn.metrics.probes import Series
from everlearn.metrics.transfer import LEARNED, learned_its_tasks

# A learner forgets for good if it loses more than this share of its accuracy on earlier tasks, and regains
# less than this share of the loss. On the streams of this package forgetters lose all and regain nothing;
# replay and DCL regain more than half.
FOR_GOOD = 0.05


class Switches(NamedTuple):
    """Accuracies of earlier tasks around switches: one entry for each earlier task and later switch.

    Attributes:
        before: (K,) the last accuracy before the switch.
        first: (K,) the first one while the later task is learned.
        lowest: (K,) the lowest one while it is learned.
        end: (K,) the last one while it is learned.
        steps: (K,) optimizer steps from `before` to `first`.
    """

    before: Floats
    first: Floats
    lowest: Floats
    end: Floats
    steps: Ints

    @property
    def lost(self) -> Floats:
        """How far the accuracy falls below the one before the switch, (K,); 0 if it does not."""
        return np.maximum(0.0, self.before - self.lowest)

    @property
    def lost_at_once(self) -> Floats:
        """How much of it is lost by the first evaluation, (K,)."""
        return np.maximum(0.0, self.before - self.first)

    @property
    def regained(self) -> Floats:
        """How much of it is back at the end of the later task, (K,)."""
        return np.maximum(0.0, np.minimum(self.before, self.end) - self.lowest)


def switches(series: Mapping[int, Series]) -> Switches:
    """Gather the accuracies of all earlier tasks at all switches that were probed on both sides."""
    # Probes without images have no accuracy; `where` leaves them out.
    probed = {task: s.where(s.total > 0) for task, s in series.items()}
    found = [_switches(task, s) for task, s in probed.items() if len(s.step)]
    if not any(len(part.before) for part in found):
        raise NotMeasuredError(
            "no row holds a probe of a task both before and while a later one is learned; measure it in "
            "the run to have this number"
        )
    return Switches(*(np.concatenate(column) for column in zip(*found, strict=True)))


def stability_gap(series: Series, switch: int) -> float:
    """Subtract a task's lowest accuracy while task `switch` is learned from the last one before."""
    before, during = _sides(series, switch)
    return float(before.accuracy[-1] - during.accuracy.min())


def mean_stability_gap(series: Mapping[int, Series]) -> float:
    """Average the gaps of all earlier tasks at all switches, regained or not."""
    found = switches(series)
    return float((found.before - found.lowest).mean())


def temporary_gap(series: Mapping[int, Series], learning_accuracy: float | None) -> float:
    """Return the mean gap of a learner that learned its tasks and regains what it loses.

    Args:
        learning_accuracy: of the probed run, as in `everlearn.metrics.learning_accuracy`.
    """
    found = switches(series)
    if learning_accuracy is None:
        raise NotMeasuredError(
            "learning accuracy was not measured, and without it a gap may be what was never learned; run "
            "with diagonal_images=200 or every=1"
        )
    if not learned_its_tasks(learning_accuracy):
        raise NotMeasuredError(
            f"the tasks were not learned: learning accuracy is {learning_accuracy:.3f}, below {LEARNED}"
        )
    lost = float(found.lost.sum())
    if lost > FOR_GOOD * found.before.sum() and found.regained.sum() < FOR_GOOD * lost:
        raise NotMeasuredError(
            "old tasks are forgotten for good: what is lost when a task begins is not regained by its end"
        )
    return mean_stability_gap(series)


def regained(series: Mapping[int, Series]) -> float:
    """Return the share of the accuracy lost on earlier tasks that is back at the end of each task."""
    found = switches(series)
    return _share_of_lost(found, found.regained)


def first_step_share(series: Mapping[int, Series]) -> float:
    """Return the share of the accuracy lost on earlier tasks that the first step of a task loses."""
    found = switches(series)
    if not (found.steps == 1).all():
        raise NotMeasuredError(
            "the effect of the first step needs a probe before and after it; run with probe_every=1"
        )
    return _share_of_lost(found, found.lost_at_once)


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


def _share_of_lost(found: Switches, part: Floats) -> float:
    lost = float(found.lost.sum())
    if not lost:
        raise NotMeasuredError(
            "no accuracy on an earlier task was lost, so there is no share of it"
        )
    return float(part.sum()) / lost


def _switches(task: int, series: Series) -> Switches:
    """Return the accuracies of one task around all switches at once."""
    switch, start = np.unique(series.learned, return_index=True)
    later = (switch > task) & (start > 0)
    accuracy = series.accuracy
    first = start[later]
    last = np.append(start[1:], len(accuracy))[later] - 1
    lowest = np.minimum.reduceat(accuracy, start)[later]
    steps = series.step[first] - series.step[first - 1]
    return Switches(accuracy[first - 1], accuracy[first], lowest, accuracy[last], steps)


def _sides(series: Series, switch: int) -> tuple[Series, Series]:
    """Split a series into before a switch and while the task after it was learned."""
    before = series.where(series.learned < switch)
    during = series.where(series.learned == switch)
    if not (len(before.step) and len(during.step)):
        raise NotMeasuredError(
            f"no probe of this task both before and while task {switch} is learned"
        )
    return before, during
