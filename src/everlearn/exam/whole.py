"""The whole test: images of all classes of a stream, met or not, the same ones each time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from everlearn.exam.one_shot import Row
from everlearn.exam.sheets import at_once, draw_rows, grouped
from everlearn.learner import Learner
from everlearn.stream.task import Ints, Task


class Page(NamedTuple):
    """Questions of some classes.

    Attributes:
        images: draws the questions.
        labels: the right answers.
        since: the first task that shows the class of each question.
    """

    images: Callable[[], Tensor]
    labels: Tensor
    since: Tensor


class Whole:
    """The test rows of every class, from the first task that tests it."""

    def __init__(self, stream: Any, device: str) -> None:
        """Keep nothing yet."""
        self._stream, self._device = stream, device
        self._pages: list[Page] = []

    def row(self, learner: Learner, step: int, learned: int) -> Row:
        """Test a learner on all classes, and tell apart those it has met by task `learned`."""
        self._pages = self._pages or list(_pages(self._stream, self._device))
        if not self._pages:
            raise ValueError("whole needs test images, and no task of this stream has any; whole=0")
        groups = grouped(self._pages, at_once(self._stream.canvas))
        counts = [_count(learner, pages, learned) for pages in groups]
        right, met_right, met_total = torch.stack(counts).sum(0).tolist()
        return {
            "kind": "whole",
            "step": step,
            "learned": learned,
            "right": right,
            "total": sum(len(page.labels) for page in self._pages),
            "met_right": met_right,
            "met_total": met_total,
        }


def _count(learner: Learner, pages: list[Page], learned: int) -> Tensor:
    """Right answers, those of classes met, and questions of classes met: (3,) on the device."""
    labels = torch.cat([page.labels for page in pages])
    met = torch.cat([page.since for page in pages]) <= learned
    right = learner.predict(torch.cat([page.images() for page in pages])) == labels
    return torch.stack([right.sum(), (right & met).sum(), met.sum()])


def _pages(stream: Any, device: str) -> Iterator[Page]:
    """Go through a stream until all of its classes were found, or to its end."""
    since: dict[int, int] = {}
    left = set(stream.class_ids)
    for task in (stream[index] for index in range(stream.tasks)):
        since |= {label: task.index for label in task.classes if label not in since}
        rows = np.flatnonzero(np.isin(task.test.labels, list(left)))
        if len(rows):
            yield _page(task, rows, since, device)
        left -= set(task.test.labels.tolist())
        if not left:
            return


def _page(task: Task, rows: Ints, since: dict[int, int], device: str) -> Page:
    labels = task.test.labels[rows]
    first = np.array([since[label] for label in labels.tolist()], np.int64)
    return Page(
        draw_rows(task.test, rows, device),
        torch.from_numpy(labels).to(device),
        torch.from_numpy(first).to(device),
    )
