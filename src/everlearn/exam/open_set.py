"""Open set: is an image of a known class at all?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from everlearn.exam.one_shot import (
    Questions,
    Row,
    class_by_class,
    draw_questions,
    new_classes,
    questions_of,
    together,
)
from everlearn.exam.plan import spread
from everlearn.learner import Remembers
from everlearn.stream import Stream, Task


def open_set(stream: Stream, learner: Remembers, classes: int = 1000, questions: int = 2000) -> Row:
    """Score images of known and of new classes, as many of each.

    Args:
        classes: how many known classes the memory is cut down to, evenly spread, and how many new.
        questions: images of each kind.
    """
    labels = learner.memory.labels
    chosen = [labels[place] for place in spread(len(labels), classes)]
    memory = learner.memory.part(chosen)
    asked = known_questions(stream, chosen, max(1, questions // len(chosen)), str(memory.device))
    known, right = _ask(learner, memory, asked)
    fresh = new_classes(stream, learner)
    asked = questions_of(fresh, len(chosen), len(known), str(memory.device))
    unknown, _ = _ask(learner, memory, asked)
    count = min(len(known), len(unknown))
    keep = spread(len(known), count)
    return {
        "kind": "open-set",
        "known": [known[place] for place in keep],
        "unknown": [unknown[place] for place in spread(len(unknown), count)],
        "right": [right[place] for place in keep],
    }


def known_questions(
    stream: Stream, classes: list[int], each: int, device: str
) -> Iterator[Questions]:
    """Test images of some classes, `each` of every one."""
    plain, chosen = class_by_class(stream), set(classes)
    places = sorted({(c - plain.first_class) // plain.classes_per_task for c in chosen})
    tasks = (plain[place] for place in places)
    return together(draw_questions(task, _rows(task, chosen, each), device) for task in tasks)


def _rows(task: Task, chosen: set[int], each: int) -> list[int]:
    labels = task.test.labels
    classes = [label for label in task.classes if label in chosen]
    return [int(row) for c in classes for row in (labels == c).nonzero()[0][:each]]


def _ask(
    learner: Remembers, memory: Any, asked: Iterable[Questions]
) -> tuple[list[float], list[int]]:
    """The novelty of images, and whether they were named right."""
    scores: list[float] = []
    right: list[int] = []
    for part in asked:
        found = learner.match(part.images, memory, 2)
        scores += [round(score, 7) for score in found.novelty.tolist()]
        right += (found.labels[:, 0] == part.labels).int().tolist()
    return scores, right
