"""Test sets: fixed test images of each task. Rows and labels are kept; images are drawn again each time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from everlearn.evaluation.plan import spread
from everlearn.stream import Split, Task, TaskStream
from everlearn.stream.task import Ints

_MAX_KEPT = 4096
_VALUES_AT_ONCE = 2**24  # numbers in the images that are drawn and classified together


class Labelled(Protocol):
    """Images with labels."""

    @property
    def labels(self) -> Tensor:
        """Class ids, (n,)."""


Images = TypeVar("Images", bound=Labelled)


class TestSet(NamedTuple):
    """Test images of one task, always the same ones.

    Attributes:
        images: draws them.
        labels: class ids, (n,).
        theta: the true affine maps, if there are any, (n, 2, 3).
        classes: the classes to choose from if the task is given (task-incremental); None for all.
    """

    task: int
    images: Callable[[], Tensor]
    labels: Tensor
    theta: Tensor | None
    classes: tuple[int, ...] | None = None


class TestSets:
    """The test sets of a stream's tasks on a device; the last few thousand are kept."""

    def __init__(
        self, stream: TaskStream, max_images: int | None, device: str, split: str = "test"
    ) -> None:
        """Keep nothing yet.

        Args:
            max_images: the largest number of images per task; None for all.
            split: which images: test or val.
        """
        self.stream = stream
        self._max_images = max_images
        self._device = device
        self._split = split
        self._kept: OrderedDict[int, TestSet] = OrderedDict()
        self._group_size = images_at_once(stream)

    def get(self, index: int) -> TestSet:
        """Return the test set of a task."""
        return self._kept[index] if index in self._kept else self.add(self.stream[index])

    def add(self, task: Task) -> TestSet:
        """Make the test set of a task that is already made, and keep it."""
        test_set = make_test_set(task, self._max_images, self._device, self._split)
        self._kept[task.index] = test_set
        while len(self._kept) > _MAX_KEPT:
            self._kept.popitem(last=False)
        return test_set

    def non_empty(self, tasks: Iterable[int]) -> Iterator[TestSet]:
        """Return the test sets that have images: a task of a blurry stream may have none."""
        return (test_set for test_set in map(self.get, tasks) if len(test_set.labels))

    def groups(self, tasks: Iterable[int]) -> Iterator[list[TestSet]]:
        """Group test sets that are drawn and classified together."""
        return group(self.non_empty(tasks), self._group_size)


def images_at_once(stream: TaskStream) -> int:
    """Return how many images of a stream to draw and classify together."""
    values: int = stream.canvas.size**2 * stream.canvas.channels
    return max(64, _VALUES_AT_ONCE // values)


def group(test_sets: Iterable[Images], size: int) -> Iterator[list[Images]]:
    """Group test sets until each group has `size` images or more."""
    waiting: list[Images] = []
    for test_set in test_sets:
        waiting.append(test_set)
        if sum(len(waiting_set.labels) for waiting_set in waiting) >= size:
            yield waiting
            waiting = []
    if waiting:
        yield waiting


def draw_rows(split: Split, rows: Ints, device: str) -> Callable[[], Tensor]:
    """Return a function that draws some rows of a split on a device; it holds no more than it needs."""
    draw = split.image_source.loader(device)
    placed = torch.from_numpy(rows).to(device)
    return lambda: draw(placed)


def make_test_set(task: Task, max_images: int | None, device: str, split: str = "test") -> TestSet:
    """Choose test images of a task, evenly spread; or validation images."""
    test = task.split(split)
    rows = np.array(spread(len(test), max_images), np.int64)
    labels = torch.from_numpy(test.labels[rows]).to(device)
    theta = None
    if test.theta is not None:
        theta = torch.from_numpy(test.theta[rows].astype(np.float32)).to(device)
    classes = task.classes if task.task_id_given else None
    return TestSet(task.index, draw_rows(test, rows, device), labels, theta, classes)
