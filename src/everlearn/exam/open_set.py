"""Open set: is an image of a known class at all?"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from everlearn.exam.one_shot import Row, class_by_class, new_classes, questions_of
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
    known, right = _known_scores(stream, learner, memory, max(1, questions // len(chosen)))
    unknown: list[float] = []
    fresh = new_classes(stream, learner)
    for asked in questions_of(fresh, len(chosen), len(known), str(memory.device)):
        unknown += _scores(learner, asked.images, memory)[0]
    count = min(len(known), len(unknown))
    keep = spread(len(known), count)
    return {
        "kind": "open-set",
        "known": [known[place] for place in keep],
        "unknown": [unknown[place] for place in spread(len(unknown), count)],
        "right": [right[place] for place in keep],
    }


def _known_scores(
    stream: Stream, learner: Remembers, memory: Any, each: int
) -> tuple[list[float], list[int]]:
    """Scores of `each` images of every class of a memory, and whether they were named right."""
    plain = class_by_class(stream)
    chosen = set(memory.labels)
    scores: list[float] = []
    right: list[int] = []
    for index in sorted({(c - plain.first_class) // plain.classes_per_task for c in chosen}):
        task = plain[index]
        batch = task.test.batch(_rows(task, chosen, each), str(memory.device))
        score, labels = _scores(learner, batch.images, memory)
        scores += score
        right += (labels == batch.labels).int().tolist()
    return scores, right


def _rows(task: Task, chosen: set[int], each: int) -> list[int]:
    labels = task.test.labels
    classes = [label for label in task.classes if label in chosen]
    return [int(row) for c in classes for row in (labels == c).nonzero()[0][:each]]


def _scores(learner: Remembers, images: Tensor, memory: Any) -> tuple[list[float], Tensor]:
    found = learner.match(images, memory, 2)
    return [round(score, 7) for score in found.novelty.tolist()], found.labels[:, 0]
