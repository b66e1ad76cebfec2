"""GEM (Lopez-Paz and Ranzato 2017, arXiv 1706.08840): no step may hurt the memory of any task.

Each step takes the gradient on the memory of every past task, so its cost grows with them. What differs
is in docs/methods/gem.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from everlearn.border import check_number, check_whole
from everlearn.memory import Buffer
from everlearn.nets import fast
from everlearn.nets.gradients import flatten, slopes_of, solve_dual, unflatten
from everlearn.settings import setting
from everlearn.stream import Task
from everlearn.student import Student, Study


@dataclass(frozen=True)
class Settings:
    """What GEM can be told."""

    study: Study = Study()
    per_task: int = setting(256, "images kept of each task (Lopez-Paz and Ranzato's code: 256)")
    margin: float = setting(0.5, "least share of each old gradient, gamma (appendix A: 0.5)")

    def __post_init__(self) -> None:
        """Check both."""
        check_whole(self.per_task, "per_task", 1, 10**6)
        check_number(self.margin, "margin", 0, 1e3)


class GEM:
    """A net and some images of every task, each task's for itself."""

    def __init__(self, stream: Any, settings: Settings, device: str) -> None:
        """Start with random weights and an empty memory, with room for the whole stream."""
        self.settings, self.device = settings, device
        self.student, canvas = Student(stream, settings.study, device), stream.canvas
        self.batch_size = self.student.batch_size()
        room = len(stream) * settings.per_task
        self.buffer = Buffer(room, canvas.shape, canvas.bits, device)
        self.counts: list[int] = []  # images of each past task, in the order of the buffer
        self._step = fast.Step(self.student.descend, self.student.changed)
        self._ask = fast.Step(self._slope_on, self.student.changed)

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Go through the task with an eye on all before; then keep some of its images."""
        past = torch.split(torch.arange(self.buffer.filled, device=self.device), self.counts)
        self.batch_size = self.student.batch_size(task) + self.buffer.filled
        for images, units in self.student.lessons(task):
            yield self._turn(images, units, past) if past else self._step(images, units)
        self.counts.append(self.student.append(task, self.settings.per_task, self.buffer))

    def _turn(self, images: Tensor, units: Tensor, past: Sequence[Tensor]) -> Tensor:
        """A step down the loss on new images, turned where it would go up on some past task."""
        student, old = self.student, torch.stack([self._ask(rows) for rows in past])
        student.optimizer.zero_grad(set_to_none=True)
        with fast.steady():
            loss = student.loss(student.logits(images), units)
            loss.backward()  # type: ignore[no-untyped-call]
        slopes = slopes_of(student.weights)
        turn = self._find_turn(old, flatten(slopes))
        if turn is not None:
            torch._foreach_add_(slopes, unflatten(turn, slopes))
        student.optimizer.step()
        return loss.detach()

    def _find_turn(self, old: Tensor, new: Tensor) -> Tensor | None:
        """What to add to a gradient (P,) for those of past tasks (K, P); none where none is hurt.

        The dual has one unknown a task. It is solved on the CPU, so this waits for a GPU.
        """
        slopes = (old @ new).double().cpu().numpy()
        if (slopes >= 0).all():
            return None
        products = (old @ old.T).double().cpu().numpy()
        shares = solve_dual(products, slopes, self.settings.margin)
        return torch.from_numpy(shares).to(old) @ old

    def _slope_on(self, rows: Tensor) -> Tensor:
        """The gradient on old images (P,)."""
        return flatten(self.student.slopes(self.buffer.images(rows), self.buffer.units(rows)))

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Name the class with the largest logit."""
        return self.student.predict(images, among)

    def state(self) -> dict[str, Any]:
        """What the student has learned, the images kept and how many of each task."""
        return {
            **self.student.state(),
            "memory": self.buffer.state(),
            "counts": list(self.counts),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.student.load_state(state)
        self.buffer.load_state(state["memory"])
        self.counts = list(state["counts"])
