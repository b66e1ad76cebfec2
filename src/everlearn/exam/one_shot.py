"""One shot: shapes never trained on are told apart by their exemplars alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from everlearn.border import check_whole
from everlearn.exam.plan import spread
from everlearn.learner import Remembers
from everlearn.stream import Stream, Task

Row = dict[str, Any]
MODES = ("standard", "generalised")
FACTORS = ("grid", "continuous")
_AT_ONCE = 4096
_QUESTIONS = 10_000


def one_shot(
    stream: Stream,
    learner: Remembers,
    classes: int,
    factors: str = "grid",
    questions: int = _QUESTIONS,
) -> list[Row]:
    """Ask for the class of images of new classes, of which a memory gets one exemplar each.

    One row is standard, with a memory of the new classes alone; one generalised, with the old ones, too.

    Args:
        classes: how many new classes; those after the last of the stream.
        factors: "grid" as in training (whatever tests are on), or "continuous", the ranges between.
        questions: how many images are asked at most, spread over the classes.
    """
    check_whole(classes, "classes", 2, 10**9)
    if factors not in FACTORS:
        raise ValueError(f"unknown factors {factors!r}; known: {', '.join(FACTORS)}")
    new, device = new_classes(stream, learner, factors), str(learner.memory.device)
    memories = (learner.memory.empty(), learner.memory.copy())
    fill(memories[0], new, range(new.first_class, new.first_class + classes), device)
    memories[1].merge(memories[0])
    right, total = [0, 0], 0
    for asked in questions_of(new, classes, questions, device):
        total += len(asked.labels)
        for place, memory in enumerate(memories):
            found = learner.match(asked.images, memory, 1).labels[:, 0]
            right[place] += int((found == asked.labels).sum())
    common = {"kind": "one-shot", "factors": factors, "classes": classes, "total": total}
    return [common | {"mode": mode, "right": n} for mode, n in zip(MODES, right, strict=True)]


def new_classes(stream: Stream, learner: Remembers, factors: str | None = None) -> Stream:
    """The endless stream of classes that come after all of a stream, or after all met so far.

    Args:
        factors: of its test images, one of FACTORS; None for those that the stream tests on.
    """
    last = learner.memory.labels[-1] if stream.tasks is None else stream.class_ids[-1]
    changes: dict[str, Any] = {"first_class": last + 1}
    if factors == "grid":
        changes |= {"test_factors": None}
    if factors == "continuous":
        changes |= {"test_factors": "continuous", "held_out": None}
    return class_by_class(stream).with_changes(**changes)


def class_by_class(stream: Stream) -> Stream:
    """The endless stream with the same shapes and test images, new classes in every task."""
    return stream.with_changes(tasks=None, scenario="class", imbalance=1.0)


def fill(memory: Any, stream: Stream, classes: range, device: str) -> None:
    """Add the exemplars of many classes to a memory."""
    for start in range(classes.start, classes.stop, _AT_ONCE):
        part = range(start, min(start + _AT_ONCE, classes.stop))
        memory.add(list(part), stream.exemplars(part, device).images)


class Questions(NamedTuple):
    """Images, their classes and their true maps."""

    images: Tensor
    labels: Tensor
    theta: Tensor


def questions_of(stream: Stream, classes: int, most: int, device: str) -> Iterator[Questions]:
    """Test images of the first classes of a stream, spread evenly when there are many."""
    each = stream.classes_per_task
    last = stream.first_class + classes
    shown = spread(-(-classes // each), max(1, most // each))
    images = max(1, most // len(shown))
    return together(_questions(stream[index], images, last, device) for index in shown)


def _questions(task: Task, images: int, last: int, device: str) -> Questions:
    rows = [row for row in spread(len(task.test), images) if task.test.labels[row] < last]
    return draw_questions(task, rows, device)


def draw_questions(task: Task, rows: list[int], device: str) -> Questions:
    """Some test images of a task."""
    batch = task.test.batch(rows, device)
    assert batch.theta is not None  # sprites have maps
    return Questions(batch.images, batch.labels, batch.theta)


def together(parts: Iterable[Questions]) -> Iterator[Questions]:
    """Join questions until there are enough of them to be asked at once."""
    waiting: list[Questions] = []
    for part in parts:
        waiting.append(part)
        if sum(len(one.labels) for one in waiting) >= _AT_ONCE:
            yield join(waiting)
            waiting = []
    if waiting:
        yield join(waiting)


def join(parts: list[Questions]) -> Questions:
    """Questions one after another."""
    return Questions(*(torch.cat(column) for column in zip(*parts, strict=True)))
