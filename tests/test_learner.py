"""The pace of learning: rates, lessons and how many there are; devices by name."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from everlearn import Canvas, Stream
from everlearn.learner import Pace, count_steps, find_device, lessons

STREAM = Stream(seed=3, tasks=2, classes_per_task=3, values_per_factor=3, canvas=Canvas(size=16))
TASK = STREAM[1]
ROWS = len(TASK.train)
COSINE = Pace(rate=1e-2, final_rate=1e-4)


def batches_of(pace, task=TASK):
    return [lesson.batch for lesson in lessons(task, pace, "cpu")]


@pytest.mark.parametrize("steps", [2, 3, 100])
def test_the_first_step_has_the_first_rate_and_the_last_the_final_one(steps):
    assert COSINE.rate_at(0, steps) == pytest.approx(1e-2, rel=1e-12)
    assert COSINE.rate_at(steps - 1, steps) == 1e-4


@given(st.integers(2, 2000))
def test_rates_fall_at_every_step(steps):
    rates = [COSINE.rate_at(step, steps) for step in range(steps)]
    assert all(one > two for one, two in pairwise(rates))


def test_half_way_the_rate_is_the_mean_of_both_ends():
    assert COSINE.rate_at(50, 101) == pytest.approx((1e-2 + 1e-4) / 2)


def test_a_task_of_one_step_has_the_first_rate():
    assert COSINE.rate_at(0, 1) == pytest.approx(1e-2, rel=1e-12)


@given(st.floats(0, 10), st.integers(0, 99))
def test_equal_ends_are_a_constant_rate(rate, step):
    assert Pace(rate=rate, final_rate=rate).rate_at(step, 100) == rate


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("batch_size", 0, ValueError),
        ("batch_size", 2.0, TypeError),
        ("batch_size", True, TypeError),
        ("epochs", 0, ValueError),
        ("epochs", "3", TypeError),
        ("rate", -1e-3, ValueError),
        ("rate", float("nan"), ValueError),
        ("rate", None, TypeError),
        ("final_rate", float("inf"), ValueError),
        ("final_rate", "1e-3", TypeError),
    ],
)
def test_a_bad_pace_is_refused_by_name(name, value, error):
    with pytest.raises(error, match=name):
        Pace(**{name: value})


@given(st.integers(1, 300), st.integers(1, 3))
def test_steps_are_counted_as_lessons_are_given(batch_size, epochs):
    full, rest = divmod(ROWS, batch_size)
    expected = epochs * (full or rest > 0)
    assert count_steps(TASK, Pace(batch_size=batch_size, epochs=epochs)) == expected


def test_an_incomplete_last_batch_is_left_out_of_every_epoch():
    size = 100
    assert ROWS % size != 0
    pace = Pace(batch_size=size, epochs=2)
    batches = batches_of(pace)
    assert [len(batch.labels) for batch in batches] == [size] * (2 * (ROWS // size))
    assert len(batches) == count_steps(TASK, pace)


def test_a_task_that_fills_no_batch_is_one_batch():
    pace = Pace(batch_size=ROWS + 1, epochs=3)
    batches = batches_of(pace)
    assert [len(batch.labels) for batch in batches] == [ROWS] * 3
    assert count_steps(TASK, pace) == 3


def test_batches_that_fill_the_task_leave_nothing_out():
    batches = batches_of(Pace(batch_size=ROWS // 2, epochs=1))
    labels = torch.cat([batch.labels for batch in batches])
    assert ROWS % 2 == 0
    assert torch.equal(labels.sort().values, torch.from_numpy(TASK.train.labels).sort().values)


def test_lessons_are_numbered_and_paced():
    pace = Pace(batch_size=50, epochs=3, rate=1e-2, final_rate=1e-4)
    given_ = list(lessons(TASK, pace, "cpu"))
    steps = count_steps(TASK, pace)
    assert [lesson.step for lesson in given_] == list(range(steps))
    assert [lesson.rate for lesson in given_] == [
        pace.rate_at(step, steps) for step in range(steps)
    ]


def test_two_passes_over_the_lessons_agree():
    pace = Pace(batch_size=50, epochs=2)
    for one, two in zip(batches_of(pace), batches_of(pace), strict=True):
        assert torch.equal(one.images, two.images)
        assert torch.equal(one.labels, two.labels)


def test_an_online_stream_allows_one_pass_only():
    task = STREAM.with_changes(online=True)[0]
    assert len(batches_of(Pace(batch_size=50, epochs=1), task)) == len(task.train) // 50
    for refuse in (lambda pace: count_steps(task, pace), lambda pace: batches_of(pace, task)):
        with pytest.raises(ValueError, match=r"online.*epochs=2"):
            refuse(Pace(batch_size=50, epochs=2))


def test_a_device_is_found_by_its_name():
    assert find_device("cpu") == "cpu"
    assert find_device("auto") == ("cuda" if torch.cuda.is_available() else "cpu")
    with pytest.raises(ValueError, match="unknown device 'gpu'; known: cpu, cuda"):
        find_device("gpu")
