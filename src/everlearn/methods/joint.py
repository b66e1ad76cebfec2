"""Joint training: a new net learns all tasks so far together, the upper bound of a classifier.

It keeps no images: the stream makes any task again. What it needs is the whole past, so its cost grows
with every task.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from everlearn.border import check_whole
from everlearn.nets import fast
from everlearn.nets.snapshot import Snapshot
from everlearn.philox import Purpose, permutation
from everlearn.settings import setting
from everlearn.stream import Task
from everlearn.student import Student, Study

# Numbers drawn at once, 268 MB: few long drawings are faster, since each touches many tasks.
_NUMBERS = 2**26


@dataclass(frozen=True)
class Settings:
    """What joint training can be told; epochs are passes over all tasks so far."""

    study: Study = Study()
    every: int = setting(
        1, "train anew after so many tasks, and after the last; the net stays between"
    )
    again: bool = setting(True, "begin from random weights each time; otherwise go on (cumulative)")

    def __post_init__(self) -> None:
        """Check how often it trains."""
        check_whole(self.every, "every", 1, 10**9)


class Joint:
    """One net, one head over all classes of the stream, the whole past."""

    def __init__(self, stream: Any, settings: Settings, device: str) -> None:
        """Start with random weights, which follow from the stream's seed."""
        if stream.online:
            raise ValueError("joint sees images again and again, which an online stream forbids")
        self.stream, self.settings, self.device = stream, settings, device
        # A net that starts from random weights has a fresh optimiser, whatever `fresh` says.
        study = replace(settings.study, fresh=settings.again or settings.study.fresh)
        self.student = Student(stream, study, device)
        self.batch_size = self.student.batch_size()
        self._start = Snapshot(self.student.net)
        self._step = fast.Step(self.student.descend, self.student.changed)
        self.tasks: list[int] = []

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Take the task in; train on all so far when it is time."""
        self.student.begin(task)
        self.tasks.append(task.index)
        if len(self.tasks) % self.settings.every and task.index != len(self.stream) - 1:
            return
        tasks = [task for task in map(self.stream.__getitem__, self.tasks) if len(task.train)]
        if tasks:
            if self.settings.again:
                self._start.restore()
            yield from self._train(tasks)

    def _train(self, tasks: list[Task]) -> Iterator[Tensor]:
        pace = self.settings.study.pace
        rows = sum(len(task.train) for task in tasks)
        steps = pace.epochs * max(1, rows // pace.batch_size)
        self.batch_size = min(pace.batch_size, rows)
        batches = mixed_batches(tasks, pace.batch_size, pace.epochs, self.device)
        for step, (images, labels) in enumerate(batches):
            fast.set_rate(self.student.optimizer, pace.rate_at(step, steps))
            yield self._step(images, self.student.model.unit(labels))

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Name the class with the largest logit."""
        return self.student.predict(images, among)

    def state(self) -> dict[str, Any]:
        """Weights, classes met, tasks met and, where it is used, what the optimiser keeps."""
        return {**self.student.state(), "tasks": list(self.tasks)}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.student.load_state(state)
        self.tasks = list(state["tasks"])


def mixed_batches(
    tasks: Sequence[Task], size: int, epochs: int, device: str
) -> Iterator[tuple[Tensor, Tensor]]:
    """Images and labels of all tasks, shuffled together; incomplete last batches are left out."""
    starts = np.cumsum([0, *(len(task.train) for task in tasks)])
    count = int(starts[-1])
    numbers = tasks[0].train.batch([0], device).images.numel()
    at_once = size * max(1, _NUMBERS // (size * numbers))
    for epoch in range(epochs):
        order = _order(tasks, count, epoch)
        whole = order[: max(count - count % size, min(size, count))]
        for start in range(0, len(whole), at_once):
            part = whole[start : start + at_once]
            images, labels = _gather(tasks, starts, part, device)
            yield from zip(torch.split(images, size), torch.split(labels, size), strict=True)


def _order(tasks: Sequence[Task], count: int, epoch: int) -> np.ndarray[Any, Any]:
    """A shuffle of all rows; of one task alone, the one in which any method sees it."""
    if len(tasks) == 1:
        return tasks[0].order(epoch)
    return permutation(tasks[0].seed, Purpose.JOINT, len(tasks), count, lane=epoch)


def _gather(
    tasks: Sequence[Task], starts: np.ndarray[Any, Any], rows: np.ndarray[Any, Any], device: str
) -> tuple[Tensor, Tensor]:
    """Draw rows of several tasks, task by task, and put them in the order asked."""
    owner = np.searchsorted(starts, rows, side="right") - 1
    order = np.argsort(owner, kind="stable")
    batches = [
        tasks[number].train.batch(rows[owner == number] - starts[number], device)
        for number in np.unique(owner)
    ]
    back = torch.from_numpy(np.argsort(order)).to(device)
    images = torch.cat([batch.images for batch in batches])[back]
    return images, torch.cat([batch.labels for batch in batches])[back]
