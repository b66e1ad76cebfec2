"""Joint training: a new net learns all tasks so far together, the upper bound of a classifier.

It keeps no images: the stream makes any task again. What it needs is the whole past, so its cost grows
with every task.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from everlearn.border import check_whole
from everlearn.learner import Pace, all_classes
from everlearn.nets import build_net, fast
from everlearn.nets.classifier import Classifier
from everlearn.philox import Purpose, permutation
from everlearn.settings import setting
from everlearn.stream import Stream, Task

_BATCHES_AT_ONCE = 16


@dataclass(frozen=True)
class Settings:
    """What joint training can be told; epochs are passes over all tasks so far."""

    pace: Pace = Pace(final_rate=1e-5)
    net: str = setting("resnet18", "which net tells the class")
    unmet: bool = setting(True, "keep classes not met yet in the softmax, as the DCL paper's code")
    every: int = setting(
        1, "train anew after so many tasks, and after the last; the net stays between"
    )
    fresh: bool = setting(True, "begin from random weights each time; otherwise go on (cumulative)")

    def __post_init__(self) -> None:
        """Check how often it trains."""
        check_whole(self.every, "every", 1, 10**9)


class Joint:
    """One net, one head over all classes of the stream, the whole past."""

    def __init__(self, stream: Stream, settings: Settings, device: str) -> None:
        """Start with random weights, which follow from the stream's seed."""
        if stream.online:
            raise ValueError("joint sees images again and again, which an online stream forbids")
        classes, canvas = all_classes(stream), stream.canvas
        self.stream, self.settings, self.device = stream, settings, device
        self.batch_size = settings.pace.batch_size
        net = build_net(settings.net, canvas.channels, len(classes), canvas.size, stream.seed)
        self.model = Classifier(net, classes, device)
        self._start = [value.clone() for value in net.state_dict().values()]
        self.optimizer = fast.adam(net.parameters(), settings.pace.rate)
        changed = [*net.state_dict().values(), *fast.moments(self.optimizer)]
        self._step = fast.Step(self._learn_batch, changed)
        self.tasks: list[int] = []

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Take the task in; train on all so far when it is time."""
        self.model.meet(task.classes)
        self.tasks.append(task.index)
        if len(self.tasks) % self.settings.every and task.index != len(self.stream) - 1:
            return
        self._begin()
        yield from self._train([self.stream[index] for index in self.tasks])

    def _begin(self) -> None:
        fast.forget(self.optimizer)
        if self.settings.fresh:
            with torch.no_grad():
                torch._foreach_copy_(list(self.model.net.state_dict().values()), self._start)

    def _train(self, tasks: list[Task]) -> Iterator[Tensor]:
        pace = self.settings.pace
        rows = sum(len(task.train) for task in tasks)
        steps = pace.epochs * max(1, rows // pace.batch_size)
        self.batch_size = min(pace.batch_size, rows)
        batches = mixed_batches(tasks, pace.batch_size, pace.epochs, self.device)
        self.model.net.train()
        for step, (images, labels) in enumerate(batches):
            fast.set_rate(self.optimizer, pace.rate_at(step, steps))
            yield self._step(images, self.model.unit(labels))

    def _learn_batch(self, images: Tensor, units: Tensor) -> Tensor:
        return fast.descend(self.optimizer, self.model.loss(images, units, self.settings.unmet))

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Name the class with the largest logit."""
        return self.model.predict(images, among)

    def state(self) -> dict[str, Any]:
        """Weights, classes met, tasks met."""
        return {**self.model.state(), "tasks": list(self.tasks)}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.model.load_state(state)
        self.tasks = list(state["tasks"])


def mixed_batches(
    tasks: Sequence[Task], size: int, epochs: int, device: str
) -> Iterator[tuple[Tensor, Tensor]]:
    """Images and labels of all tasks, shuffled together; incomplete last batches are left out."""
    starts = np.cumsum([0, *(len(task.train) for task in tasks)])
    count = int(starts[-1])
    for epoch in range(epochs):
        order = permutation(tasks[0].seed, Purpose.JOINT, len(tasks), count, lane=epoch)
        whole = order[: max(count - count % size, min(size, count))]
        for start in range(0, len(whole), _BATCHES_AT_ONCE * size):
            part = whole[start : start + _BATCHES_AT_ONCE * size]
            images, labels = _gather(tasks, starts, part, device)
            yield from zip(torch.split(images, size), torch.split(labels, size), strict=True)


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
