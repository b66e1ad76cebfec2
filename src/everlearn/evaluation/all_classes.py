"""The test on all classes of a stream, seen or not, with the same images each time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from everlearn.evaluation.test_sets import draw_rows, group, images_at_once
from everlearn.learner import Learner
from everlearn.rows import AllClassesRow
from everlearn.stream import Split, TaskStream
from everlearn.stream.task import Ints


class ClassImages(NamedTuple):
    """Test images of some classes.

    Attributes:
        images: draws them.
        labels: class ids, (n,).
        first_task: the first task that shows the class of each image, (n,).
    """

    images: Callable[[], Tensor]
    labels: Tensor
    first_task: Tensor


class AllClassesTest:
    """The test images of every class, from the first task that tests it."""

    def __init__(self, stream: TaskStream, device: str, split: str = "test") -> None:
        """Draw nothing yet; `split` is test or val."""
        self._stream = stream
        self._device = device
        self._split = split
        self._parts: list[ClassImages] = []

    def row(self, learner: Learner, step: int, learned: int) -> AllClassesRow:
        """Test a learner on all classes, and on those seen by task `learned`."""
        self._parts = self._parts or list(find_test_images(self._stream, self._device, self._split))
        if not self._parts:
            raise ValueError(
                f"all_classes_every needs {self._split} images, and no task of this stream has any; "
                "set it to 0"
            )
        groups = group(self._parts, images_at_once(self._stream))
        counts = [_count(learner, parts, learned) for parts in groups]
        correct, seen_correct, seen_total = torch.stack(counts).sum(0).tolist()
        return {
            "kind": "all_classes",
            "step": step,
            "learned": learned,
            "correct": correct,
            "total": sum(len(part.labels) for part in self._parts),
            "seen_correct": seen_correct,
            "seen_total": seen_total,
        }


def _count(learner: Learner, parts: list[ClassImages], learned: int) -> Tensor:
    """Count correct answers, those of seen classes, and images of seen classes: (3,) on the device."""
    labels = torch.cat([part.labels for part in parts])
    seen = torch.cat([part.first_task for part in parts]) <= learned
    correct = learner.predict(torch.cat([part.images() for part in parts])) == labels
    return torch.stack([correct.sum(), (correct & seen).sum(), seen.sum()])


def find_test_images(stream: TaskStream, device: str, split: str = "test") -> Iterator[ClassImages]:
    """Go through a stream until test images of all classes were found, or to its end."""
    first_task: dict[int, int] = {}
    missing = set(stream.class_ids)
    for task in (stream[index] for index in range(len(stream))):
        first_task |= {label: task.index for label in task.classes if label not in first_task}
        test = task.split(split)
        rows = np.flatnonzero(np.isin(test.labels, list(missing)))
        if len(rows):
            yield _class_images(test, rows, first_task, device)
        missing -= set(test.labels.tolist())
        if not missing:
            return


def _class_images(test: Split, rows: Ints, first_task: dict[int, int], device: str) -> ClassImages:
    labels = test.labels[rows]
    first = np.array([first_task[label] for label in labels.tolist()], np.int64)
    return ClassImages(
        draw_rows(test, rows, device),
        torch.from_numpy(labels).to(device),
        torch.from_numpy(first).to(device),
    )
