"""Accuracy, forgetting and transfer from the task matrix."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everlearn.metrics import (
    NotMeasuredError,
    Table,
    average_accuracy,
    backward_transfer,
    forgetting,
    forward_transfer,
    learning_accuracy,
    stream_average,
)

ALL = (
    average_accuracy,
    learning_accuracy,
    stream_average,
    backward_transfer,
    forward_transfer,
    forgetting,
)


def _table(percent, learned=None, total=100) -> Table:
    """Entries in per cent; a negative one was not measured."""
    correct = np.array(percent)
    learned = np.arange(len(correct)) if learned is None else np.array(learned)
    totals = np.where(correct < 0, 0, total)
    return Table(learned, np.arange(correct.shape[1]), np.maximum(correct, 0), totals)


EXAMPLE = _table([[10, 10, 10], [90, 10, 10], [60, 80, 20], [50, 70, 90]], [-1, 0, 1, 2])


def test_the_metrics_of_a_matrix_by_hand():
    assert average_accuracy(EXAMPLE) == pytest.approx(0.7)
    assert backward_transfer(EXAMPLE) == pytest.approx(-0.25)
    assert forward_transfer(EXAMPLE) == pytest.approx(0.05)
    assert forgetting(EXAMPLE) == pytest.approx(0.25)
    assert learning_accuracy(EXAMPLE) == pytest.approx(2.6 / 3)
    assert stream_average(EXAMPLE) == pytest.approx((0.9 + 0.7 + 0.7) / 3)


def test_forgetting_is_negative_only_without_the_last_row():
    rising = _table([[50, -1], [70, 90]])
    assert forgetting(rising) == pytest.approx(-0.2)
    assert forgetting(rising, include_last=True) == 0


def test_forgetting_falls_from_the_best_and_not_from_the_first_accuracy():
    assert forgetting(_table([[50, -1, -1], [80, 90, -1], [60, 90, 90]])) == pytest.approx(0.1)


def test_a_sparse_cadence_uses_the_tasks_that_were_measured():
    sparse = _table([[90, 80, 0, 0], [30, 40, 50, 70]], [1, 3])
    assert average_accuracy(sparse) == pytest.approx(0.475)
    assert learning_accuracy(sparse) == pytest.approx((0.8 + 0.7) / 2)
    assert backward_transfer(sparse) == pytest.approx(0.4 - 0.8)
    assert stream_average(sparse) == pytest.approx((0.85 + 0.475) / 2)


@pytest.mark.parametrize("include_last", [False, True])
def test_a_task_first_measured_at_the_end_says_nothing_of_forgetting(include_last):
    sparse = _table([[90, 80, 0, 0], [30, 40, 50, 70]], [1, 3])
    assert forgetting(sparse, include_last) == pytest.approx((0.6 + 0.4) / 2)


def test_tasks_that_were_not_learned_yet_do_not_enter_the_average():
    assert average_accuracy(_table([[90, 0, 0], [70, 50, 0]])) == pytest.approx(0.6)


def test_an_empty_task_is_skipped():
    empty = _table([[90, -1, -1], [80, -1, -1], [70, -1, 60]])
    assert average_accuracy(empty) == pytest.approx(0.65)
    assert backward_transfer(empty) == pytest.approx(-0.2)
    assert forgetting(empty) == pytest.approx(0.2)


@pytest.mark.parametrize("number", ALL)
@pytest.mark.parametrize(
    "empty", [_table(np.zeros((0, 0), int)), _table([[-1, -1], [-1, -1]]), _table([[-1]], [-1])]
)
def test_what_was_not_measured_is_refused_with_a_reason(number, empty):
    with pytest.raises(NotMeasuredError, match=r"no (test )?row"):
        number(empty)


@pytest.mark.parametrize("number", [backward_transfer, forward_transfer, forgetting])
def test_one_task_has_no_transfer(number):
    with pytest.raises(NotMeasuredError, match="no row holds"):
        number(_table([[10], [90]], [-1, 0]))


def _plain(r, b):
    """The definitions, term by term."""
    n = len(r)
    return (
        sum(r[n - 1]) / n,
        sum(r[i][i] for i in range(n)) / n,
        sum(sum(r[t][: t + 1]) / (t + 1) for t in range(n)) / n,
        sum(r[n - 1][i] - r[i][i] for i in range(n - 1)) / (n - 1),
        sum(r[i - 1][i] - b[i] for i in range(1, n)) / (n - 1),
        sum(max(r[t][i] for t in range(n - 1)) - r[n - 1][i] for i in range(n - 1)) / (n - 1),
    )


@given(st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_every_number_equals_its_definition_on_full_matrices(tasks, seed):
    percent = np.random.default_rng(seed).integers(0, 101, (tasks + 1, tasks))
    expected = _plain((percent[1:] / 100).tolist(), (percent[0] / 100).tolist())
    full = _table(percent, range(-1, tasks))
    np.testing.assert_allclose([number(full) for number in ALL], expected, atol=1e-12)


@given(st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_forgetting_is_never_less_than_what_backward_transfer_lost(tasks, seed):
    percent = np.random.default_rng(seed).integers(0, 101, (tasks, tasks))
    assert forgetting(_table(percent)) >= -backward_transfer(_table(percent)) - 1e-12
