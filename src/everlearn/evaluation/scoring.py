"""Scoring: correct answers of a learner, counted on the device and read back once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from everlearn.evaluation.test_sets import TestSet, TestSets
from everlearn.learner import HasMemory, Learner, PredictsTheta
from everlearn.stream import Task


class Score(NamedTuple):
    """Correct answers on the test images of one task."""

    task: int
    correct: int
    total: int


def score(learner: Learner, groups: Iterable[list[TestSet]]) -> list[Score]:
    """Score a learner on test sets, one group at a time."""
    test_sets: list[TestSet] = []
    counts: list[Tensor] = []
    for group in groups:
        predictions = _predict(learner, group)
        counts += [
            (predicted == test_set.labels).sum()
            for predicted, test_set in zip(predictions, group, strict=True)
        ]
        test_sets += group
    return _read(test_sets, counts)


def _predict(learner: Learner, group: list[TestSet]) -> Sequence[Tensor]:
    """Classify test sets together, or one by one if each has its own classes to choose from."""
    if any(test_set.classes is not None for test_set in group):
        return [learner.predict(test_set.images(), test_set.classes) for test_set in group]
    predictions = learner.predict(torch.cat([test_set.images() for test_set in group]))
    return torch.split(predictions, [len(test_set.labels) for test_set in group])


def score_within_task(learner: Learner, tests: TestSets, tasks: Iterable[int]) -> list[Score]:
    """Score a learner on each task with the answers restricted to the classes of the task.

    A learner with a memory uses one with the exemplars of that task alone, seen or not.
    """
    test_sets = list(tests.non_empty(tasks))
    counts = [
        (
            _predict_within_task(learner, test_set, tests.stream[test_set.task]) == test_set.labels
        ).sum()
        for test_set in test_sets
    ]
    return _read(test_sets, counts)


def _predict_within_task(learner: Learner, test_set: TestSet, task: Task) -> Tensor:
    if not isinstance(learner, HasMemory):
        return learner.predict(test_set.images(), task.classes)
    memory = learner.memory.empty()
    memory.add(list(task.classes), task.exemplars(learner.device).images)
    return learner.match(test_set.images(), memory, 1).labels[:, 0]


def _read(test_sets: list[TestSet], counts: list[Tensor]) -> list[Score]:
    correct = torch.stack(counts).tolist() if counts else []
    return [
        Score(test_set.task, count, len(test_set.labels))
        for test_set, count in zip(test_sets, correct, strict=True)
    ]


def sum_squared_errors(learner: PredictsTheta, test_set: TestSet) -> list[float]:
    """Sum the squared errors of the six entries of the predicted maps; [] without true maps."""
    if test_set.theta is None or not len(test_set.labels):
        return []
    errors = learner.theta(test_set.images()) - test_set.theta
    sums: list[float] = errors.double().square().sum(0).flatten().tolist()
    return sums
