"""The stability gap at a switch of tasks, and the way back."""

from __future__ import annotations

import numpy as np
import pytest

from everlearn.metrics import NotMeasuredError, Series, recovery, stability_gap

ENDS = {0: 20, 1: 60}


def _series(before: list[int], during: list[int]) -> Series:
    """Evaluations every 10 steps, in per cent; task 1 begins after step 20."""
    right = np.array([*before, *during])
    step = 20 + 10 * (np.arange(len(right)) - len(before) + 1)
    learned = np.repeat([0, 1], [len(before), len(during)])
    return Series(step, learned, right, np.where(right < 0, 0, 100)).where(right >= 0)


def test_the_gap_is_the_fall_from_the_last_value_before_the_switch():
    assert stability_gap(_series([90, 80], [50, 30, 70]), 1) == pytest.approx(0.5)


def test_a_task_that_only_gains_has_a_negative_gap():
    assert stability_gap(_series([80], [85, 90]), 1) == pytest.approx(-0.05)


def test_recovery_counts_steps_from_the_switch_to_95_per_cent_after_the_lowest_point():
    assert recovery(_series([80], [50, 30, 75, 76]), ENDS, 1) == 40
    assert recovery(_series([80], [50, 78, 30, 77]), ENDS, 1) == 40
    assert recovery(_series([75], [50, 60]), ENDS, 1, share=0.8) == 20


def test_recovery_counts_from_the_end_of_the_task_and_not_from_the_last_probe():
    assert recovery(_series([80], [30, 80]), {0: 25}, 1) == 15


def test_nothing_lost_needs_no_recovery():
    assert recovery(_series([80], [76, 90]), ENDS, 1) == 0


def test_what_is_not_regained_has_no_recovery():
    assert recovery(_series([80], [30, 75]), ENDS, 1) is None


def test_a_switch_that_was_not_measured_is_refused():
    for switch in (0, 2):
        with pytest.raises(NotMeasuredError, match="no probe of this task"):
            stability_gap(_series([80], [30]), switch)
    with pytest.raises(NotMeasuredError, match="task 0 ended"):
        recovery(_series([80], [30]), {}, 1)
