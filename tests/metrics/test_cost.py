"""The cost of a run."""

from __future__ import annotations

import pytest

from everlearn.metrics import NotMeasuredError, cost


def _task(learned: int, **changes) -> dict:
    row = {
        "kind": "task",
        "learned": learned,
        "step": 10 * (learned + 1),
        "images": 400,
        "seconds": 2.0,
        "evaluation_seconds": 0.5,
        "loss": 0.1,
        "bytes": {"net": 1000, "memory": 100 * (learned + 1)},
        "parameters": 250 + learned,
        "peak_memory": 5000,
    }
    return {**row, **changes}


def test_costs_add_up_and_stores_count_at_the_end():
    found = cost([_task(1), _task(0, peak_memory=9000, images=200), {"kind": "test"}])
    assert (found.steps, found.seconds, found.evaluation_seconds) == (20, 4.0, 1.0)
    assert found.images_per_second == pytest.approx(150)
    assert found.bytes == {"net": 1000, "memory": 200}
    assert found.total_bytes == 1200
    assert (found.peak_memory, found.parameters) == (9000, 251)


def test_a_task_learned_again_after_a_restart_counts_once():
    assert cost([_task(0, seconds=7.0), _task(0), _task(1)]).seconds == 4.0


def test_no_time_gives_no_speed():
    assert cost([_task(0, seconds=0.0)]).images_per_second is None


def test_no_task_rows_are_refused():
    with pytest.raises(NotMeasuredError, match="no task row"):
        cost([{"kind": "test"}])


def test_what_is_stored_is_as_last_counted():
    uncounted = {k: v for k, v in _task(2).items() if k not in ("bytes", "parameters")}
    found = cost([_task(0), _task(1), uncounted])
    assert found.steps == 30
    assert found.bytes == {"net": 1000, "memory": 200}
    assert found.parameters == 251
    assert cost([uncounted]).total_bytes is None
