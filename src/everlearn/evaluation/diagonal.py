"""The diagonal of the task matrix: each task right after it is learned, and the next one right before.

These tests are made after every task, whatever the plan's `every` is: without them, forgetting and
learning accuracy are known for few tasks, and forward transfer for none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from everlearn.evaluation.plan import Plan
from everlearn.evaluation.test_sets import TestSet, make_test_set
from everlearn.learner import Learner
from everlearn.rows import DiagonalRow
from everlearn.stream import Task, TaskStream


class DiagonalTest:
    """Tests the task just learned and the next one, on the same few images each time."""

    def __init__(self, stream: TaskStream, plan: Plan, device: str) -> None:
        """Draw nothing yet."""
        self._stream = stream
        self._max_images = plan.diagonal_images
        self._split = plan.split
        self._device = device
        self._next: TestSet | None = None

    def rows(
        self, learner: Learner, step: int, task: Task, upcoming: Task | None = None
    ) -> Iterator[DiagonalRow]:
        """Test a learner after `task`; one transfer from the device.

        Args:
            upcoming: the task after it, if it is already made.
        """
        tests = [_Test(self._test_set(task), None)]
        following = upcoming or self._make_next(task.index)
        if following is not None:
            self._next = self._test_set(following)
            tests.append(_Test(self._next, following.classes))
        tests = [test for test in tests if len(test.test_set.labels)]
        if not tests:  # a task of a blurry stream may have no test images
            return
        counts = torch.stack([_count(learner, test) for test in tests]).tolist()
        for test, (correct, answered) in zip(tests, counts, strict=True):
            yield _row(step, task.index, test, correct, answered)

    def _test_set(self, task: Task) -> TestSet:
        """Make the test set of a task, unless it was the next one a task ago."""
        if self._next is not None and self._next.task == task.index:
            return self._next
        return make_test_set(task, self._max_images, self._device, self._split)

    def _make_next(self, index: int) -> Task | None:
        """Return the next task of the stream, even if the run ends before it."""
        tasks = self._stream.tasks
        return self._stream[index + 1] if tasks is None or index + 1 < tasks else None


class _Test(NamedTuple):
    """What is tested; `among`: the classes of the next task, which its answers are restricted to."""

    test_set: TestSet
    among: tuple[int, ...] | None


def _count(learner: Learner, test: _Test) -> Tensor:
    """Count the correct answers, and those that name one of the classes given: (2,) on the device."""
    test_set, among = test
    predictions = learner.predict(test_set.images(), test_set.classes if among is None else among)
    named = torch.isin(predictions, predictions.new_tensor(among or ()))
    return torch.stack([(predictions == test_set.labels).sum(), named.sum()])


def _row(step: int, learned: int, test: _Test, correct: int, answered: int) -> DiagonalRow:
    row: DiagonalRow = {
        "kind": "diagonal",
        "step": step,
        "learned": learned,
        "tested": test.test_set.task,
        "correct": correct,
        "total": len(test.test_set.labels),
    }
    if test.among is not None:
        row["classes"] = len(test.among)
        row["answered"] = answered
    return row
