"""Accuracy, forgetting and transfer from the task matrix."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everlearn.metrics import (
    NextTasks,
    NotMeasuredError,
    Table,
    average_accuracy,
    backward_transfer,
    forgetting,
    forward_transfer,
    just_learned,
    learned_its_tasks,
    learning_accuracy,
    next_tasks,
    pooled,
    stream_average,
    table,
)

ALL = (
    average_accuracy,
    learning_accuracy,
    stream_average,
    backward_transfer,
    forgetting,
)


def _table(percent, learned=None, total=100) -> Table:
    """Entries in per cent; a negative one was not measured."""
    correct = np.array(percent)
    learned = np.arange(len(correct)) if learned is None else np.array(learned)
    totals = np.where(correct < 0, 0, total)
    return Table(learned, np.arange(correct.shape[1]), np.maximum(correct, 0), totals)


def _next_tasks(percent, classes, answered=None) -> NextTasks:
    """Tests of tasks 1, 2, .. before learning them, in per cent."""
    correct = np.array(percent)
    tasks = np.arange(len(correct)) + 1
    total = np.full(len(correct), 100)
    return NextTasks(
        tasks, correct, total, np.array(classes), total if answered is None else np.array(answered)
    )


def _row(kind, learned, tested, correct, total=100, **more) -> dict:
    return {
        "kind": kind,
        "learned": learned,
        "tested": tested,
        "correct": correct,
        "total": total,
        **more,
    }


EXAMPLE = _table([[10, 10, 10], [90, 10, 10], [60, 80, 20], [50, 70, 90]], [-1, 0, 1, 2])


def test_the_metrics_of_a_matrix_by_hand():
    assert average_accuracy(EXAMPLE) == pytest.approx(0.7)
    assert backward_transfer(EXAMPLE) == pytest.approx(-0.25)
    assert forward_transfer(_next_tasks([10, 20], [10, 10])) == pytest.approx(0.05)
    assert forgetting(EXAMPLE) == pytest.approx(0.25)
    assert learning_accuracy(EXAMPLE) == pytest.approx(2.6 / 3)
    assert stream_average(EXAMPLE) == pytest.approx((0.9 + 0.7 + 0.7) / 3)


def test_forgetting_is_negative_only_without_the_last_row():
    rising = _table([[50, -1], [70, 90]])
    assert forgetting(rising) == pytest.approx(-0.2)
    assert forgetting(rising, include_last=True) == 0


def test_forgetting_falls_from_the_best_and_not_from_the_first_accuracy():
    assert forgetting(_table([[50, -1, -1], [80, 90, -1], [60, 90, 90]])) == pytest.approx(0.1)


SPARSE = [
    *(_row("test", 1, 0, 90), _row("test", 1, 1, 80)),
    *(
        _row("test", 3, 0, 30),
        _row("test", 3, 1, 40),
        _row("test", 3, 2, 50),
        _row("test", 3, 3, 70),
    ),
]
DIAGONAL = [_row("diagonal", 0, 0, 19, 20), _row("diagonal", 2, 2, 20, 20)]


@pytest.mark.parametrize("metric", [learning_accuracy, backward_transfer, forgetting])
def test_a_number_of_some_tasks_is_refused(metric):
    with pytest.raises(NotMeasuredError, match="2 of 4 tasks were not tested right after"):
        metric(table(SPARSE))


def test_diagonal_rows_give_the_accuracy_right_after_learning_by_hand():
    sparse = table([*SPARSE, *DIAGONAL])
    assert learning_accuracy(sparse) == pytest.approx((0.95 + 0.8 + 1.0 + 0.7) / 4)
    assert backward_transfer(sparse) == pytest.approx((0.3 - 0.95 + 0.4 - 0.8 + 0.5 - 1.0) / 3)
    assert forgetting(sparse) == pytest.approx((0.95 - 0.3 + 0.8 - 0.4 + 1.0 - 0.5) / 3)


def test_accuracy_on_all_tasks_so_far_is_that_of_full_tests_alone():
    sparse = table([*SPARSE, *DIAGONAL])
    assert average_accuracy(sparse) == average_accuracy(table(SPARSE)) == pytest.approx(0.475)
    assert stream_average(sparse) == pytest.approx((0.85 + 0.475) / 2)
    assert pooled(sparse).learned.tolist() == [1, 3]


def test_tasks_learned_after_the_last_full_test_do_not_count():
    rows = [*SPARSE, *DIAGONAL, _row("diagonal", 4, 4, 0)]
    assert learning_accuracy(table(rows)) == learning_accuracy(table([*SPARSE, *DIAGONAL]))


def test_the_series_of_learning_accuracies_has_every_task():
    series = just_learned(
        [*SPARSE, *DIAGONAL, _row("diagonal", 3, 3, 0), _row("diagonal", 4, 4, 60)]
    )
    assert series.tasks.tolist() == [0, 1, 2, 3, 4]
    # Task 3 has a full test, which counts.
    assert series.accuracy.tolist() == pytest.approx([0.95, 0.8, 1.0, 0.7, 0.6])
    assert just_learned([]).tasks.tolist() == []


def _run_of(tasks, every, accuracy_after):
    """Rows of a learner with accuracy `accuracy_after(learned, tested)`, tested every so many tasks."""
    full = [t for t in range(tasks) if (t + 1) % every == 0]
    tests = [_row("test", t, i, accuracy_after(t, i)) for t in full for i in range(t + 1)]
    return [*tests, *(_row("diagonal", t, t, accuracy_after(t, t)) for t in range(tasks))]


@pytest.mark.parametrize("every", [1, 10])
def test_the_worst_forgetter_has_the_largest_forgetting_however_rarely_it_is_tested(every):
    forgetter = table(_run_of(50, every, lambda learned, tested: 100 * (learned == tested)))
    replay = table(_run_of(50, every, lambda learned, tested: 100 - (learned - tested)))
    assert forgetting(forgetter) == 1
    assert backward_transfer(forgetter) == -1
    assert forgetting(replay) == pytest.approx(sum(range(1, 50)) / 49 / 100)
    assert learning_accuracy(forgetter) == learning_accuracy(replay) == 1


def test_what_was_learned_is_nine_of_ten():
    assert learned_its_tasks(sum([0.8, 0.9, 1.0]) / 3)
    assert learned_its_tasks(0.89) is False
    assert learned_its_tasks(None) is None


def test_forward_transfer_is_the_gain_over_chance():
    assert forward_transfer(_next_tasks([60, 30], [2, 4])) == pytest.approx((0.1 + 0.05) / 2)


def test_forward_transfer_leaves_out_unanswered_tasks_and_tasks_of_one_class():
    tests = _next_tasks([0, 35, 100], [10, 10, 1], [0, 100, 100])
    assert forward_transfer(tests) == pytest.approx(0.25)


def test_a_learner_that_names_no_new_class_has_no_forward_transfer():
    with pytest.raises(NotMeasuredError, match="names no class that it has not learned"):
        forward_transfer(_next_tasks([0, 0], [10, 10], [0, 0]))


def test_the_next_task_s_rows_are_those_with_classes():
    rows = [
        _row("diagonal", 0, 0, 90),
        _row("diagonal", 0, 1, 12, classes=10, answered=100),
        _row("diagonal", 1, 2, 5, classes=20, answered=99),
    ]
    assert [column.tolist() for column in next_tasks(rows)] == [
        [1, 2], [12, 5], [100, 100], [10, 20], [100, 99]
    ]  # fmt: skip
    with pytest.raises(NotMeasuredError, match="diagonal_images"):
        forward_transfer(next_tasks(rows[:1]))


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


@pytest.mark.parametrize("number", [backward_transfer, forgetting])
def test_one_task_has_no_transfer(number):
    with pytest.raises(NotMeasuredError, match="no row holds"):
        number(_table([[10], [90]], [-1, 0]))


def _plain(r):
    """The definitions, term by term."""
    n = len(r)
    return (
        sum(r[n - 1]) / n,
        sum(r[i][i] for i in range(n)) / n,
        sum(sum(r[t][: t + 1]) / (t + 1) for t in range(n)) / n,
        sum(r[n - 1][i] - r[i][i] for i in range(n - 1)) / (n - 1),
        sum(max(r[t][i] for t in range(n - 1)) - r[n - 1][i] for i in range(n - 1)) / (n - 1),
    )


@given(st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_every_number_equals_its_definition_on_full_matrices(tasks, seed):
    percent = np.random.default_rng(seed).integers(0, 101, (tasks + 1, tasks))
    expected = _plain((percent[1:] / 100).tolist())
    full = _table(percent, range(-1, tasks))  # the untrained learner's row counts nowhere
    np.testing.assert_allclose([number(full) for number in ALL], expected, atol=1e-12)


@given(st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_forgetting_is_never_less_than_what_backward_transfer_lost(tasks, seed):
    percent = np.random.default_rng(seed).integers(0, 101, (tasks, tasks))
    assert forgetting(_table(percent)) >= -backward_transfer(_table(percent)) - 1e-12
