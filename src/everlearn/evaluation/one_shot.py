"""One-shot classification: shapes never trained on, known from one exemplar each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from everlearn.core.validate import check_int
from everlearn.evaluation.plan import spread
from everlearn.learner import HasMemory
from everlearn.memory import Exemplars, SearchResult
from everlearn.render.affine import transform_images
from everlearn.rows import OneShotCeilingRow, OneShotRow
from everlearn.stream import Stream, Task

MODES = ("standard", "generalised")
FACTORS = ("grid", "continuous")
_BATCH = 4096
_MAX_IMAGES = 10_000


def one_shot(
    stream: Stream,
    learner: HasMemory,
    classes: int,
    factors: str = "grid",
    step: int = 0,
    learned: int = -1,
    max_images: int = _MAX_IMAGES,
) -> list[OneShotRow]:
    """Classify images of new classes, of which a memory gets one exemplar each.

    One row is standard, with a memory of the new classes alone; one is generalised, with the old ones too.

    Args:
        classes: how many new classes; those after the last of the stream.
        factors: "grid" as in training (whatever tests are on), or "continuous", the ranges between.
        step: optimizer steps so far, for the rows.
        learned: the last task learned, for the rows.
        max_images: how many images are classified at most, spread over the classes.
    """
    check_int(classes, "classes", 2, 10**9)
    if factors not in FACTORS:
        raise ValueError(f"unknown factors {factors!r}; known: {', '.join(FACTORS)}")
    new = new_classes(stream, learner, factors)
    memories = learner.memory.empty(), learner.memory.copy()

    def match(batch: QueryBatch, memory: Exemplars) -> SearchResult:
        return learner.match(batch.images, memory, 1)

    correct, total = _count_correct(new, classes, memories, match, max_images)
    return [
        {
            "kind": "one-shot",
            "factors": factors,
            "classes": classes,
            "total": total,
            "mode": mode,
            "correct": count,
            "step": step,
            "learned": learned,
        }
        for mode, count in zip(MODES, correct, strict=True)
    ]


def new_classes(stream: Stream, learner: HasMemory, factors: str | None = None) -> Stream:
    """Return the endless stream of the classes after all of a stream, or after all seen so far.

    Args:
        factors: of its test images, one of FACTORS; None for those that the stream tests on.
    """
    last = learner.memory.labels[-1] if stream.tasks is None else stream.class_ids[-1]
    return classes_after(stream, last, factors)


def classes_after(stream: Stream, last: int, factors: str | None = None) -> Stream:
    """Return the endless stream of the classes after one, with test images as of `new_classes`."""
    changes: dict[str, Any] = {"first_class": last + 1}
    if factors == "grid":
        changes |= {"test_factors": None}
    if factors == "continuous":
        changes |= {"test_factors": "continuous", "held_out": None}
    return class_by_class(stream).with_changes(**changes)


def class_by_class(stream: Stream) -> Stream:
    """Return the endless class-incremental stream with the same shapes and test images."""
    return stream.with_changes(tasks=None, scenario="class", imbalance=1.0)


def add_exemplars(memory: Exemplars, stream: Stream, classes: range, device: str) -> None:
    """Add the exemplars of many classes to a memory."""
    for start in range(classes.start, classes.stop, _BATCH):
        part = range(start, min(start + _BATCH, classes.stop))
        memory.add(list(part), stream.exemplars(part, device).images)


def one_shot_ceiling(
    stream: Stream,
    device: str,
    classes: int,
    factors: str = "grid",
    max_images: int = _MAX_IMAGES,
) -> list[OneShotCeilingRow]:
    """Classify the images of `one_shot` after their true maps: what the nearest exemplar gets right.

    Args:
        stream: a finite one; its classes are the old ones.
    """
    ids = stream.class_ids
    new = classes_after(stream, ids[-1], factors)
    old = Exemplars(stream.canvas.shape, device)
    add_exemplars(old, stream, range(ids[0], ids[-1] + 1), device)

    def match(batch: QueryBatch, memory: Exemplars) -> SearchResult:
        return memory.search(transform_images(batch.images, batch.theta), 1)

    correct, total = _count_correct(new, classes, (old.empty(), old), match, max_images)
    return [
        {
            "kind": "one-shot-ceiling",
            "seed": stream.seed,
            "size": stream.canvas.size,
            "factors": factors,
            "classes": classes,
            "total": total,
            "mode": mode,
            "correct": count,
        }
        for mode, count in zip(MODES, correct, strict=True)
    ]


def _count_correct(
    new: Stream,
    classes: int,
    memories: tuple[Exemplars, Exemplars],
    match: Callable[[QueryBatch, Exemplars], SearchResult],
    max_images: int,
) -> tuple[list[int], int]:
    """Add new classes to an empty memory and to one of old classes; count their images matched right.

    Returns:
        The counts, by memory, and the number of images.
    """
    device = str(memories[0].device)
    add_exemplars(memories[0], new, range(new.first_class, new.first_class + classes), device)
    memories[1].merge(memories[0])
    correct = [0, 0]
    total = 0
    for batch in query_batches(new, classes, max_images, device):
        total += len(batch.labels)
        for place, memory in enumerate(memories):
            found = match(batch, memory).labels[:, 0]
            correct[place] += int((found == batch.labels).sum())
    return correct, total


class QueryBatch(NamedTuple):
    """Images, their class ids and their true affine maps."""

    images: Tensor
    labels: Tensor
    theta: Tensor


def query_batches(
    stream: Stream, classes: int, max_images: int, device: str
) -> Iterator[QueryBatch]:
    """Draw test images of the first classes of a stream, evenly spread if there are many classes."""
    classes_per_task = stream.classes_per_task
    stop = stream.first_class + classes
    tasks = spread(-(-classes // classes_per_task), max(1, max_images // classes_per_task))
    images = max(1, max_images // len(tasks))
    return join_small(_queries(stream[index], images, stop, device) for index in tasks)


def _queries(task: Task, images: int, stop: int, device: str) -> QueryBatch:
    rows = [row for row in spread(len(task.test), images) if task.test.labels[row] < stop]
    return draw_queries(task, rows, device)


def draw_queries(task: Task, rows: list[int], device: str) -> QueryBatch:
    """Draw some test images of a task."""
    batch = task.test.batch(rows, device)
    assert batch.theta is not None  # sprites have maps
    return QueryBatch(batch.images, batch.labels, batch.theta)


def join_small(batches: Iterable[QueryBatch]) -> Iterator[QueryBatch]:
    """Join small batches until they are large enough to be matched at once."""
    waiting: list[QueryBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(len(part.labels) for part in waiting) >= _BATCH:
            yield join(waiting)
            waiting = []
    if waiting:
        yield join(waiting)


def join(batches: list[QueryBatch]) -> QueryBatch:
    """Concatenate batches."""
    return QueryBatch(*(torch.cat(column) for column in zip(*batches, strict=True)))
