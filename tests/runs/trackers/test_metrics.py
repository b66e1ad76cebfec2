"""Metrics to log: by hand, and none that was not measured."""

from __future__ import annotations

import math

import pytest

from everlearn.runs.trackers import metrics_of


def a_test(learned: int, tested: int, correct: int, total: int, kind: str = "test") -> dict:
    counts = {"tested": tested, "correct": correct, "total": total}
    return {"kind": kind, "step": 10 * learned + 10, "learned": learned, **counts}


FIRST = [a_test(0, 0, 8, 10)]
# Task 1 was tested as well, although it is not learned yet.
FUTURE = [a_test(0, 1, 4, 4)]
SECOND = [a_test(1, 0, 5, 10), a_test(1, 1, 3, 4)]


def task_row(learned: int, **changes: object) -> dict:
    row = {
        "kind": "task",
        "step": 10 * learned + 10,
        "learned": learned,
        "images": 100,
        "seconds": 2.0,
        "evaluation_seconds": 0.5,
        "loss": 0.25,
        "peak_memory": 1000,
        "bytes": {"net": 30, "memory": 12},
        "parameters": 7,
    }
    return row | changes


def test_accuracies_are_those_of_the_tasks_learned_so_far():
    metrics = metrics_of(task_row(1), [*FIRST, *SECOND])
    assert metrics["accuracy/pooled"] == pytest.approx(8 / 14)
    assert metrics["summary/average_accuracy"] == pytest.approx((0.5 + 0.75) / 2)
    assert metrics["accuracy/first_task"] == 0.5
    assert metrics["accuracy/current_task"] == 0.75
    assert metrics["summary/forgetting"] == pytest.approx(0.8 - 0.5)


def test_a_future_task_does_not_count():
    metrics = metrics_of(task_row(0), [*FIRST, *FUTURE])
    assert metrics["accuracy/pooled"] == metrics["summary/average_accuracy"] == 0.8


def test_costs_are_those_of_the_task():
    metrics = metrics_of(task_row(1), SECOND)
    assert {name: n for name, n in metrics.items() if name.startswith("task/")} == {
        "task/learned": 2.0,
        "task/loss": 0.25,
        "task/seconds": 2.0,
        "task/evaluation_seconds": 0.5,
        "task/images_per_second": 50.0,
        "task/stored_bytes": 42.0,
        "task/peak_memory": 1000.0,
    }


def test_a_task_that_was_not_tested_has_no_accuracy():
    row = task_row(1)
    del row["bytes"]
    metrics = metrics_of(row, FIRST)
    assert not [name for name in metrics if not name.startswith("task/")]
    assert "task/stored_bytes" not in metrics


def test_what_was_not_measured_is_left_out():
    metrics = metrics_of(task_row(0, loss=None, seconds=0.0), FIRST)
    missing = {"task/loss", "task/images_per_second", "summary/forgetting", "summary/theta_rmse"}
    assert not missing & set(metrics)
    assert all(math.isfinite(n) for n in metrics.values())


def test_a_probe_is_one_accuracy_of_its_task():
    assert metrics_of(a_test(5, 3, 1, 4, "probe"), []) == {"probe/task_3": 0.25}


def test_a_test_waits_for_the_end_of_its_task():
    assert metrics_of(FIRST[0], FIRST) == {}


def test_errors_of_affine_maps_are_roots_of_means():
    # Two images, six entries each: 24 / 12 is 2.
    theta = {"kind": "theta", "step": 10, "learned": 0, "tested": 0, "total": 2}
    metrics = metrics_of(task_row(0), [*FIRST, theta | {"squared_errors": [4.0] * 6}])
    assert metrics["summary/theta_rmse"] == pytest.approx(math.sqrt(2))


def one_shot(learned: int, correct: int) -> dict:
    row = {"kind": "one-shot", "mode": "standard", "factors": "grid", "classes": 10}
    return row | {"step": 0, "learned": learned, "correct": correct, "total": 20}


def test_one_shot_and_open_set_are_logged_where_they_were_measured():
    scores = {"kind": "open-set", "known": [0.1, 0.2], "unknown": [0.15, 0.3], "correct": [1, 0]}
    finals = [one_shot(0, 9), scores | {"step": 0, "learned": 0}]
    metrics = metrics_of(task_row(0), [*FIRST, *finals])
    assert metrics["summary/one_shot_standard_grid_10"] == pytest.approx(9 / 20)
    assert metrics["summary/open_set_auroc"] == 0.75  # 3 of 4 pairs are in order
    later = metrics_of(task_row(1), [*FIRST, *finals, *SECOND])
    assert not [name for name in later if "one_shot" in name or "open_set" in name]
