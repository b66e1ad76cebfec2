"""Open-set recognition: does an image belong to a known class at all?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from everlearn.evaluation.one_shot import (
    QueryBatch,
    class_by_class,
    classes_after,
    draw_queries,
    join_small,
    new_classes,
    query_batches,
)
from everlearn.evaluation.plan import spread
from everlearn.learner import HasMemory
from everlearn.memory import Exemplars, SearchResult
from everlearn.render.affine import transform_images
from everlearn.rows import OpenSetCeilingRow, OpenSetRow
from everlearn.stream import Stream, Task

Search = Callable[[QueryBatch], SearchResult]  # the two nearest exemplars of each image


def open_set(
    stream: Stream,
    learner: HasMemory,
    classes: int = 1000,
    max_images: int = 2000,
    step: int = 0,
    learned: int = -1,
) -> OpenSetRow:
    """Score the novelty of as many images of known as of new classes.

    Args:
        classes: how many known classes the memory is reduced to, evenly spread, and how many new ones.
        max_images: of known and of new classes, each.
        step: optimizer steps so far, for the row.
        learned: the last task learned, for the row.
    """
    labels = learner.memory.labels
    chosen = [labels[place] for place in spread(len(labels), classes)]
    memory = learner.memory.subset(chosen)
    device = str(memory.device)
    batches = known_queries(stream, chosen, max(1, max_images // len(chosen)), device)

    def search(batch: QueryBatch) -> SearchResult:
        return learner.match(batch.images, memory, 2)

    known, correct = _match(search, batches)
    batches = query_batches(new_classes(stream, learner), len(chosen), len(known), device)
    unknown, _ = _match(search, batches)
    count = min(len(known), len(unknown))
    kept = spread(len(known), count)
    return {
        "kind": "open-set",
        "known": [known[place] for place in kept],
        "unknown": [unknown[place] for place in spread(len(unknown), count)],
        "correct": [correct[place] for place in kept],
        "step": step,
        "learned": learned,
    }


def open_set_ceiling(
    stream: Stream, device: str, classes: int = 1000, max_images: int = 2000
) -> OpenSetCeilingRow:
    """Score images as `open_set` does, in canonical pose by their true maps: what a perfect net reaches.

    Args:
        classes: how many known classes of a finite stream, evenly spread, and how many new ones.
        max_images: of known and of new classes, each.
    """
    ids = stream.class_ids
    chosen = [ids[place] for place in spread(len(ids), classes)]
    memory = Exemplars(stream.canvas.shape, device)
    memory.add(chosen, stream.exemplars(chosen, device).images)
    new = classes_after(stream, ids[-1])

    def search(batch: QueryBatch) -> SearchResult:
        return memory.search(transform_images(batch.images, batch.theta), 2)

    images_per_class = max(1, max_images // len(chosen))
    known, _ = _match(search, known_queries(stream, chosen, images_per_class, device))
    unknown, _ = _match(search, query_batches(new, len(chosen), len(known), device))
    return {
        "kind": "open-set-ceiling",
        "seed": stream.seed,
        "size": stream.canvas.size,
        "known": known,
        "unknown": unknown,
    }


def known_queries(
    stream: Stream, classes: list[int], images_per_class: int, device: str
) -> Iterator[QueryBatch]:
    """Draw test images of some classes of a stream."""
    plain = class_by_class(stream)
    chosen = set(classes)
    indices = sorted({(c - plain.first_class) // plain.classes_per_task for c in chosen})
    tasks = (plain[index] for index in indices)
    return join_small(
        draw_queries(task, _rows(task, chosen, images_per_class), device) for task in tasks
    )


def _rows(task: Task, chosen: set[int], images_per_class: int) -> list[int]:
    labels = task.test.labels
    classes = [label for label in task.classes if label in chosen]
    return [int(row) for c in classes for row in (labels == c).nonzero()[0][:images_per_class]]


def _match(search: Search, batches: Iterable[QueryBatch]) -> tuple[list[float], list[int]]:
    """Return the novelty of images, and whether each was classified correctly."""
    novelty: list[float] = []
    correct: list[int] = []
    for batch in batches:
        found = search(batch)
        novelty += [round(value, 7) for value in found.novelty.tolist()]
        correct += (found.labels[:, 0] == batch.labels).int().tolist()
    return novelty, correct
