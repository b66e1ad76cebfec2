"""Stability while training: probes, minima, windows, learning curves."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everlearn.metrics import (
    NotMeasuredError,
    ends_of_tasks,
    largest_fall,
    largest_rise,
    learning_curve_area,
    min_accuracy,
    probes,
    windowed_forgetting,
    windowed_plasticity,
    worst_case_accuracy,
)

VALUES = st.lists(st.integers(0, 20).map(lambda correct: correct / 20), min_size=1, max_size=12)


def _probe(step: int, learned: int, tested: int, correct: int, total: int = 10) -> dict:
    return {
        "kind": "probe",
        "step": step,
        "learned": learned,
        "tested": tested,
        "correct": correct,
        "total": total,
    }


def _end(learned: int, step: int) -> dict:
    return {"kind": "task", "learned": learned, "step": step}


# Three tasks of two steps; task 0 falls to 2 of 10 and task 1 to 4 after they ended.
ROWS = [
    *(_probe(0, -1, 0, 1), _probe(1, 0, 0, 1), _probe(2, 0, 0, 8)),
    *(_probe(3, 1, 0, 2), _probe(3, 1, 1, 0), _probe(4, 1, 0, 6), _probe(4, 1, 1, 7)),
    *(_probe(5, 2, 0, 5), _probe(5, 2, 1, 4), _probe(5, 2, 2, 6)),
    *(_probe(6, 2, 0, 7), _probe(6, 2, 1, 5), _probe(6, 2, 2, 9)),
    *(_end(0, 2), _end(1, 4), _end(2, 6)),
]


def test_probes_are_sorted_by_step_and_the_later_of_two_counts():
    rows = [_probe(4, 1, 0, 3), _probe(2, 0, 0, 5), _probe(4, 1, 0, 6), _probe(4, 1, 1, 9)]
    found = probes([*rows, {**rows[0], "kind": "test"}])
    assert list(found) == [0, 1]
    assert [column.tolist() for column in found[0]] == [[2, 4], [0, 1], [5, 6], [10, 10]]


def test_ends_come_from_the_task_rows():
    assert ends_of_tasks(ROWS) == {0: 2, 1: 4, 2: 6}


def test_current_and_minima_give_the_worst_case():
    series = probes(ROWS)
    ends = ends_of_tasks(ROWS)
    assert min_accuracy(series, ends) == pytest.approx(0.3)
    assert worst_case_accuracy(series, ends) == pytest.approx(0.5)


def test_minima_begin_with_the_evaluation_at_the_end_of_the_task():
    rows = [_probe(1, 0, 0, 1), _probe(2, 0, 0, 4), _probe(3, 1, 0, 9), _probe(3, 1, 1, 9)]
    assert min_accuracy(probes(rows), {0: 2}) == pytest.approx(0.4)
    assert min_accuracy(probes(rows), {0: 3}) == pytest.approx(0.9)


def test_an_empty_task_does_not_enter_the_minima():
    rows = [*ROWS, _probe(7, 3, 0, 8), _probe(7, 3, 3, 0, 0)]
    ends = ends_of_tasks(rows)
    assert min_accuracy(probes(rows), ends) == pytest.approx((0.2 + 0.4 + 0.9) / 3)


def test_the_first_task_alone_is_its_own_worst_case_and_has_no_minimum():
    series = probes([_probe(1, 0, 0, 6), _probe(2, 0, 0, 8)])
    assert worst_case_accuracy(series, {}) == pytest.approx(0.8)
    with pytest.raises(NotMeasuredError, match="no row holds a probe of an earlier task"):
        min_accuracy(series, {})


def test_no_probes_and_no_ends_are_refused_with_a_reason():
    with pytest.raises(NotMeasuredError, match=r"tasks \[0, 1\] ended"):
        min_accuracy(probes(ROWS), {})
    for number in (min_accuracy, worst_case_accuracy):
        with pytest.raises(NotMeasuredError, match="no row holds"):
            number({}, {})
    with pytest.raises(NotMeasuredError, match="no row holds"):
        windowed_forgetting({}, 10)


def test_the_largest_fall_and_rise_within_a_window():
    series = [1, 0.4, 0.9, 0.9, 0.2]
    assert largest_fall(series, 2) == pytest.approx(0.7)
    assert largest_fall(series, 5) == pytest.approx(0.8)
    assert largest_rise(series, 2) == pytest.approx(0.5)
    assert largest_rise(series, 5) == pytest.approx(0.5)


def test_a_rise_may_begin_below_an_earlier_maximum():
    assert largest_rise([0.5, 0.1, 0.9], 3) == pytest.approx(0.8)
    assert largest_fall([0.5, 0.1, 0.9], 3) == pytest.approx(0.4)


def test_constant_accuracy_is_stable():
    rows = [_probe(n, n // 5, task, 7) for n in range(10) for task in range(n // 5 + 1)]
    series = probes(rows)
    ends = {0: 4}
    assert windowed_forgetting(series, 10) == windowed_plasticity(series, 10) == 0
    assert min_accuracy(series, ends) == worst_case_accuracy(series, ends) == pytest.approx(0.7)


@given(VALUES, st.integers(2, 15))
def test_windows_agree_with_all_pairs(values, window):
    pairs = [
        values[n] - values[m]
        for n in range(len(values))
        for m in range(n, min(n + window, len(values)))
    ]
    assert largest_fall(values, window) == pytest.approx(max(pairs))


@pytest.mark.parametrize("window", range(2, 30))
def test_a_steady_fall_is_as_large_as_the_window_is_wide(window):
    steady = 1 - np.arange(20) / 20
    assert largest_fall(steady, window) == pytest.approx((min(window, 20) - 1) / 20)


@given(VALUES, st.integers(2, 15))
def test_a_rise_is_a_fall_read_backwards(values, window):
    assert largest_rise(values, window) == pytest.approx(largest_fall(values[::-1], window))


@given(VALUES, st.integers(2, 14))
def test_a_wider_window_never_finds_less(values, window):
    assert largest_fall(values, window) <= largest_fall(values, window + 1) <= 1


def test_windows_average_over_the_tasks_including_the_current_one():
    series = probes(ROWS)
    assert windowed_forgetting(series, 2) == pytest.approx((0.6 + 0.3 + 0) / 3)
    assert windowed_plasticity(series, 2) == pytest.approx((0.7 + 0.7 + 0.3) / 3)


def test_windows_leave_out_what_was_measured_long_before_a_later_task():
    early = [_probe(0, -1, 1, 9), _probe(0, -1, 2, 9)]
    assert windowed_forgetting(probes([*early, *ROWS]), 2) == windowed_forgetting(probes(ROWS), 2)


def test_a_window_of_one_evaluation_is_refused():
    with pytest.raises(ValueError, match="window must lie in 2"):
        largest_fall([0.1, 0.2], 1)


def test_wide_windows_over_long_series_are_quick():
    values = np.random.default_rng(0).random(200_000)
    start = time.process_time()
    assert largest_fall(values, 10_000) > 0.9
    assert time.process_time() - start < 1


def test_learning_curves_are_averaged_over_their_first_evaluations():
    series = probes(ROWS)
    assert learning_curve_area(series, 1) == pytest.approx((0.1 + 0 + 0.6) / 3)
    assert learning_curve_area(series, 2) == pytest.approx((0.45 + 0.35 + 0.75) / 3)
    assert learning_curve_area(series, 10) == learning_curve_area(series, 2)
