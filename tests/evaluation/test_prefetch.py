"""Prefetching gives the same tasks as making them on demand; timing keeps evaluation apart."""

from __future__ import annotations

import pytest

from everlearn.evaluation.prefetch import TaskLoader
from everlearn.evaluation.timing import TaskTimer
from everlearn.stream import Gaussians

STREAM = Gaussians(tasks=4)


@pytest.mark.parametrize("prefetched", [False, True])
@pytest.mark.parametrize(("start", "end", "expected"), [(0, 4, 4), (2, 4, 2), (1, 2, 1), (3, 3, 0)])
def test_tasks_come_in_order(prefetched: bool, start: int, end: int, expected: int) -> None:
    loader = TaskLoader(STREAM, start, end, "cpu")
    indices = []
    for task in loader:
        indices.append(task.index)
        if prefetched:
            loader.prefetch()
    assert indices == list(range(start, end))
    assert len(indices) == expected


def test_a_task_that_was_prefetched_is_not_made_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    original = Gaussians.__getitem__

    def count(stream: Gaussians, index: int) -> object:
        made.append(index)
        return original(stream, index)

    monkeypatch.setattr(Gaussians, "__getitem__", count)
    loader = TaskLoader(STREAM, 0, 4, "cpu")
    for _ in loader:
        loader.prefetch()
    assert made == [0, 1, 2, 3]


def test_evaluation_does_not_count_as_learning(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([10.0, 13.0, 17.0, 22.0])  # start, evaluation from 13 to 17, now 22
    monkeypatch.setattr("everlearn.evaluation.timing.perf_counter", lambda: next(times))
    monkeypatch.setattr("everlearn.evaluation.timing.synchronized_time", lambda device: next(times))
    timer = TaskTimer("cpu")
    with timer.evaluating():
        pass
    assert timer.evaluation_seconds == 4.0
    assert timer.learning_seconds == 8.0
