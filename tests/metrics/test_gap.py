"""The stability gap at a switch of tasks, and the recovery from it."""

from __future__ import annotations

import numpy as np
import pytest

from everlearn.metrics import (
    NotMeasuredError,
    Series,
    first_step_share,
    mean_stability_gap,
    recovery,
    regained,
    stability_gap,
    temporary_gap,
)

ENDS = {0: 20, 1: 60}


def _series(before: list[int], during: list[int]) -> Series:
    """Evaluations every 10 steps, in per cent; task 1 begins after step 20."""
    correct = np.array([*before, *during])
    step = 20 + 10 * (np.arange(len(correct)) - len(before) + 1)
    learned = np.repeat([0, 1], [len(before), len(during)])
    return Series(step, learned, correct, np.where(correct < 0, 0, 100)).where(correct >= 0)


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


def _learned(learned: list[int], percent: list[int]) -> Series:
    count = np.array(percent)
    return Series(np.arange(len(count)), np.array(learned), count, np.where(count < 0, 0, 100))


def test_the_mean_gap_is_over_switches_and_earlier_tasks_by_hand():
    first = _learned([0, 0, 1, 1, 2, 2], [50, 90, 60, 80, 70, 75])  # falls by 0.3 and by 0.1
    second = _learned([1, 1, 2, 2], [10, 70, 80, 90])  # gains 0.1 at the only switch after it
    assert mean_stability_gap({0: first, 1: second}) == pytest.approx((0.3 + 0.1 - 0.1) / 3)


def test_the_mean_gap_is_that_of_every_pair():
    random = np.random.default_rng(0)
    series = {
        task: _learned(np.sort(random.integers(-1, 6, 30)).tolist(), random.integers(0, 101, 30))
        for task in range(4)
    }
    gaps = [stability_gap(s, k) for task, s in series.items() for k in range(task + 1, 6)]
    assert mean_stability_gap(series) == pytest.approx(np.mean(gaps))


def test_evaluations_of_nothing_leave_the_mean_gap_alone():
    series = _learned([0, 0, 1, 1], [90, 0, 60, 0])
    empty = series._replace(total=np.array([100, 0, 100, 0]))
    assert mean_stability_gap({0: empty}) == pytest.approx(0.3)


@pytest.mark.parametrize("learned", [[0, 0], [1, 1]])
def test_a_mean_gap_needs_both_sides_of_a_switch(learned):
    with pytest.raises(NotMeasuredError, match="both before and while"):
        mean_stability_gap({0: _learned(learned, [90, 60])})
    with pytest.raises(NotMeasuredError):
        mean_stability_gap({})


# At the switches: 90 -> 60, 50 at the lowest, 80 at the end; 80 -> 70 -> 85. Lost: 0.4 and 0.1.
FIRST = _learned([0, 0, 1, 1, 1, 2, 2], [40, 90, 60, 50, 80, 70, 85])
# 70 -> 75 -> 65 -> 60. Lost: 0.1, none of it by the first step, none regained.
SECOND = _learned([1, 1, 2, 2, 2], [10, 70, 75, 65, 60])


def test_what_is_regained_by_the_end_of_a_task_by_hand():
    assert regained({0: FIRST}) == pytest.approx((0.3 + 0.1) / (0.4 + 0.1))
    assert regained({0: FIRST, 1: SECOND}) == pytest.approx(0.4 / 0.6)


def test_the_share_of_the_first_step_by_hand():
    assert first_step_share({0: FIRST, 1: SECOND}) == pytest.approx((0.3 + 0.1 + 0) / 0.6)


def test_the_first_step_needs_probes_after_every_step():
    sparse = FIRST._replace(step=2 * FIRST.step)
    with pytest.raises(NotMeasuredError, match="probe_every=1"):
        first_step_share({0: sparse})
    assert regained({0: sparse}) == regained({0: FIRST})


def test_shares_of_nothing_lost_are_refused():
    rising = {0: _learned([0, 1, 1], [50, 50, 90])}
    for metric in (regained, first_step_share):
        with pytest.raises(NotMeasuredError, match="no accuracy on an earlier task was lost"):
            metric(rising)
    assert temporary_gap(rising, 1.0) == 0


def test_a_gap_is_that_of_a_learner_that_learned_its_tasks_and_regains_them():
    series = {0: FIRST, 1: SECOND}
    assert temporary_gap(series, 0.9) == mean_stability_gap(series) == pytest.approx(0.6 / 3)
    with pytest.raises(
        NotMeasuredError, match=r"not learned: learning accuracy is 0\.890, below 0\.9"
    ):
        temporary_gap(series, 0.89)
    with pytest.raises(NotMeasuredError, match="learning accuracy was not measured"):
        temporary_gap(series, None)


def test_forgetting_is_no_gap():
    forgotten = {0: _learned([0, 1, 1, 2, 2], [100, 30, 0, 0, 0])}
    assert regained(forgotten) == 0
    with pytest.raises(NotMeasuredError, match="forgotten for good"):
        temporary_gap(forgotten, 1.0)


def test_a_small_loss_is_not_forgetting():
    series = {0: _learned([0, 1, 1, 2], [100, 98, 98, 98])}  # 0.02 of 1.0 + 0.98 is lost
    assert regained(series) == 0
    assert temporary_gap(series, 1.0) == pytest.approx(0.01)


def test_shares_need_both_sides_of_a_switch():
    for metric in (regained, first_step_share):
        with pytest.raises(NotMeasuredError, match="both before and while"):
            metric({0: _learned([0, 0], [90, 60])})
