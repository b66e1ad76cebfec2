"""The schedule of a task: learning rates, training batches and their number; devices by name."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from everlearn import Canvas, Stream
from everlearn.training.device import find_device
from everlearn.training.schedule import Schedule, count_steps, training_batches

STREAM = Stream(seed=3, tasks=2, classes_per_task=3, values_per_factor=3, canvas=Canvas(size=16))
TASK = STREAM[1]
ROWS = len(TASK.train)
COSINE = Schedule(learning_rate=1e-2, final_learning_rate=1e-4)


def batches_of(schedule, task=TASK):
    return [training.batch for training in training_batches(task, schedule, "cpu")]


@pytest.mark.parametrize("steps", [2, 3, 100])
def test_the_first_and_last_steps_have_the_first_and_final_learning_rates(steps):
    assert COSINE.learning_rate_at(0, steps) == pytest.approx(1e-2, rel=1e-12)
    assert COSINE.learning_rate_at(steps - 1, steps) == 1e-4


@given(st.integers(2, 2000))
def test_learning_rates_fall_at_every_step(steps):
    rates = [COSINE.learning_rate_at(step, steps) for step in range(steps)]
    assert all(before > after for before, after in pairwise(rates))


def test_half_way_the_learning_rate_is_the_mean_of_both_ends():
    assert COSINE.learning_rate_at(50, 101) == pytest.approx((1e-2 + 1e-4) / 2)


def test_a_task_of_one_step_has_the_first_learning_rate():
    assert COSINE.learning_rate_at(0, 1) == pytest.approx(1e-2, rel=1e-12)


@given(st.floats(0, 10), st.integers(0, 99))
def test_equal_ends_give_a_constant_learning_rate(rate, step):
    assert (
        Schedule(learning_rate=rate, final_learning_rate=rate).learning_rate_at(step, 100) == rate
    )


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("batch_size", 0, ValueError),
        ("batch_size", 2.0, TypeError),
        ("batch_size", True, TypeError),
        ("epochs", 0, ValueError),
        ("epochs", "3", TypeError),
        ("learning_rate", -1e-3, ValueError),
        ("learning_rate", float("nan"), ValueError),
        ("learning_rate", None, TypeError),
        ("final_learning_rate", float("inf"), ValueError),
        ("final_learning_rate", "1e-3", TypeError),
    ],
)
def test_a_bad_schedule_is_refused_by_name(name, value, error):
    with pytest.raises(error, match=name):
        Schedule(**{name: value})


@given(st.integers(1, 300), st.integers(1, 3))
def test_steps_are_counted_as_training_batches_come(batch_size, epochs):
    full, rest = divmod(ROWS, batch_size)
    expected = epochs * (full or rest > 0)
    assert count_steps(TASK, Schedule(batch_size=batch_size, epochs=epochs)) == expected


def test_an_incomplete_last_batch_is_left_out_of_every_epoch():
    size = 100
    assert ROWS % size != 0
    schedule = Schedule(batch_size=size, epochs=2)
    batches = batches_of(schedule)
    assert [len(batch.labels) for batch in batches] == [size] * (2 * (ROWS // size))
    assert len(batches) == count_steps(TASK, schedule)


def test_a_task_that_fills_no_batch_is_one_batch():
    schedule = Schedule(batch_size=ROWS + 1, epochs=3)
    batches = batches_of(schedule)
    assert [len(batch.labels) for batch in batches] == [ROWS] * 3
    assert count_steps(TASK, schedule) == 3


def test_batches_that_fill_the_task_leave_nothing_out():
    batches = batches_of(Schedule(batch_size=ROWS // 2, epochs=1))
    labels = torch.cat([batch.labels for batch in batches])
    assert ROWS % 2 == 0
    assert torch.equal(labels.sort().values, torch.from_numpy(TASK.train.labels).sort().values)


def test_training_batches_carry_their_step_and_learning_rate():
    schedule = Schedule(batch_size=50, epochs=3, learning_rate=1e-2, final_learning_rate=1e-4)
    batches = list(training_batches(TASK, schedule, "cpu"))
    steps = count_steps(TASK, schedule)
    assert [batch.step for batch in batches] == list(range(steps))
    assert [batch.learning_rate for batch in batches] == [
        schedule.learning_rate_at(step, steps) for step in range(steps)
    ]


def test_two_passes_over_the_training_batches_agree():
    schedule = Schedule(batch_size=50, epochs=2)
    for first, second in zip(batches_of(schedule), batches_of(schedule), strict=True):
        assert torch.equal(first.images, second.images)
        assert torch.equal(first.labels, second.labels)


def test_an_online_stream_allows_one_pass_only():
    task = STREAM.with_changes(online=True)[0]
    assert len(batches_of(Schedule(batch_size=50, epochs=1), task)) == len(task.train) // 50
    for refuse in (
        lambda schedule: count_steps(task, schedule),
        lambda schedule: batches_of(schedule, task),
    ):
        with pytest.raises(ValueError, match=r"online.*epochs=2"):
            refuse(Schedule(batch_size=50, epochs=2))


def test_a_device_is_found_by_its_name():
    assert find_device("cpu") == "cpu"
    assert find_device("auto") == ("cuda" if torch.cuda.is_available() else "cpu")
    with pytest.raises(ValueError, match="unknown device 'gpu'; known: cpu, cuda"):
        find_device("gpu")
