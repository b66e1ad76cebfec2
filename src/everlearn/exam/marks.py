"""Marks: how many answers of a learner are right, counted on the device and read once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from everlearn.exam.sheets import Sheet, Sheets
from everlearn.learner import Learner, Maps, Remembers
from everlearn.stream import Task


class Mark(NamedTuple):
    """How many of how many were right."""

    task: int
    right: int
    total: int


def mark(learner: Learner, groups: Iterable[list[Sheet]]) -> list[Mark]:
    """Mark sheets, group by group."""
    sheets: list[Sheet] = []
    counts: list[Tensor] = []
    for group in groups:
        answers = _answer(learner, group)
        counts += [(part == sheet.labels).sum() for part, sheet in zip(answers, group, strict=True)]
        sheets += group
    return _read(sheets, counts)


def _answer(learner: Learner, group: list[Sheet]) -> Sequence[Tensor]:
    """Answer sheets together, or one by one where each has classes of its own to choose from."""
    if any(sheet.told is not None for sheet in group):
        return [learner.predict(sheet.images(), sheet.told) for sheet in group]
    answers = learner.predict(torch.cat([sheet.images() for sheet in group]))
    return torch.split(answers, [len(sheet.labels) for sheet in group])


def mark_within(learner: Learner, sheets: Sheets, tasks: Iterable[int]) -> list[Mark]:
    """Mark sheets when the classes of the task are told.

    A learner with a memory is lent one that holds the exemplars of the task, met or not, alone.
    """
    asked = list(sheets.asking(tasks))
    counts = [
        (_answer_within(learner, sheet, sheets.stream[sheet.task]) == sheet.labels).sum()
        for sheet in asked
    ]
    return _read(asked, counts)


def _answer_within(learner: Learner, sheet: Sheet, task: Task) -> Tensor:
    if not isinstance(learner, Remembers):
        return learner.predict(sheet.images(), task.classes)
    memory = learner.memory.empty()
    memory.add(list(task.classes), task.exemplars(learner.device).images)
    return learner.match(sheet.images(), memory, 1).labels[:, 0]


def _read(sheets: list[Sheet], counts: list[Tensor]) -> list[Mark]:
    right = torch.stack(counts).tolist() if counts else []
    return [
        Mark(sheet.task, count, len(sheet.labels))
        for sheet, count in zip(sheets, right, strict=True)
    ]


def square_errors(learner: Maps, sheet: Sheet) -> list[float]:
    """Sums of squared errors of the six entries of the map."""
    if sheet.theta is None or not len(sheet.labels):
        return []
    errors = learner.theta(sheet.images()) - sheet.theta
    sums: list[float] = errors.double().square().sum(0).flatten().tolist()
    return sums
