"""GDumb (Prabhu et al. 2020, ECCV): keep images greedily; a new net learns from these alone.

The net is trained from random weights when it is to be asked, and knows nothing but the memory. What
differs is in docs/methods/gdumb.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from everlearn.border import check_whole
from everlearn.learner import Pace
from everlearn.memory import Buffer
from everlearn.memory.greedy import Greedy
from everlearn.nets import fast
from everlearn.nets.snapshot import Snapshot
from everlearn.philox import Purpose, permutation
from everlearn.settings import setting
from everlearn.stream import Task
from everlearn.student import Student, Study

# Of the paper's code: SGD with momentum 0.9, 0.05 to 0.0005, batches of 16, 256 passes.
_PACE = Pace(batch_size=16, epochs=256, rate=0.05, final_rate=0.0005)


@dataclass(frozen=True)
class Settings:
    """What GDumb can be told; epochs are passes over the memory."""

    study: Study = Study(pace=_PACE, optimizer="sgd", fresh=True)
    memory: int = setting(5000, "images kept (paper's code: 200 to 9,000, for 10 to 200 classes)")
    every: int = setting(
        1, "train anew after so many tasks, and after the last; the net stays between"
    )

    def __post_init__(self) -> None:
        """Check the memory and how often it trains."""
        check_whole(self.memory, "memory", 1, 10**9)
        check_whole(self.every, "every", 1, 10**9)


class GDumb:
    """A buffer, and a net that learned from it."""

    def __init__(self, stream: Any, settings: Settings, device: str) -> None:
        """Start with random weights and an empty buffer."""
        self.settings, self.device, self._seed = settings, device, stream.seed
        # An online stream shows an image once; what is kept may be seen again. A net that starts from
        # random weights has a fresh optimiser, whatever `fresh` says.
        pace = replace(settings.study.pace, epochs=1)
        study = replace(settings.study, pace=pace, fresh=True)
        self.student, canvas = Student(stream, study, device), stream.canvas
        self.tasks, self._last = 0, len(stream) - 1
        self.batch_size = self.student.batch_size()
        self.buffer = Buffer(settings.memory, canvas.shape, canvas.bits, device)
        self.choice = Greedy(settings.memory, stream.seed)
        self._start = Snapshot(self.student.net)
        self._step = fast.Step(self._learn_rows, self.student.changed)

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Let the buffer choose from the task; when it is time, train a new net."""
        self.student.begin(task)
        self.tasks += 1
        self._remember(task)
        due = self.tasks % self.settings.every == 0 or task.index == self._last
        if due and self.buffer.filled:
            self._start.restore()
            yield from self._train(task.index)

    def _remember(self, task: Task) -> None:
        """Show the images in the order in which other methods see them first."""
        order = task.order()
        items, slots = self.choice.admit(task.index, task.train.labels[order])
        kept = task.train.batch(order[items], self.device)
        self.buffer.put(slots, kept.images, self.student.model.unit(kept.labels))

    def _train(self, task: int) -> Iterator[Tensor]:
        """Go through the buffer again and again; a last batch that is not full is left out."""
        pace, filled = self.settings.study.pace, self.buffer.filled
        self.batch_size = min(pace.batch_size, filled)
        each = filled // self.batch_size
        for step in range(pace.epochs * each):
            if step % each == 0:
                order = permutation(self._seed, Purpose.RECALL, task, filled, lane=step // each)
                whole = torch.from_numpy(order[: each * self.batch_size]).to(self.device)
                batches = torch.split(whole, self.batch_size)
            fast.set_rate(self.student.optimizer, pace.rate_at(step, pace.epochs * each))
            yield self._step(batches[step % each])

    def _learn_rows(self, rows: Tensor) -> Tensor:
        """Mean cross-entropy over some rows of the buffer."""
        student, images = self.student, self.buffer.images(rows)
        loss = student.loss(student.logits(images), self.buffer.units(rows))
        return fast.descend(student.optimizer, loss)

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Name the class with the largest logit."""
        return self.student.predict(images, among)

    def state(self) -> dict[str, Any]:
        """The net, the images kept, how they were chosen, and how many tasks there were."""
        return {
            **self.student.state(),
            "memory": self.buffer.state(),
            "choice": self.choice.state(),
            "tasks": self.tasks,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.student.load_state(state)
        self.buffer.load_state(state["memory"])
        self.choice.load_state(state["choice"])
        self.tasks = state["tasks"]
