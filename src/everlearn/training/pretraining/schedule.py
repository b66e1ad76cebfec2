"""The steps of a pre-training: their number, their learning rates and the progress after each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from time import monotonic
from typing import NamedTuple, Protocol

from torch import Tensor

from everlearn.training.optimizer_step import set_learning_rate
from everlearn.training.optimizers import Optimizer

UNTIMED = 10  # first steps, in which kernels are compiled
TIMED = 10  # steps after those, which measure the speed
_MARGIN = 0.9  # of the time; the rest is a reserve for slow steps


class Schedule(Protocol):
    """The settings that determine the number of steps and the learning rate."""

    @property
    def steps(self) -> int | None:
        """The number of steps; None: as many as fit into the time."""

    @property
    def seconds(self) -> float:
        """The time for training."""

    def learning_rate_at(self, step: int, steps: int | None) -> float:
        """The learning rate of a step, counted from 0; `steps` may be unknown at first."""


class TrainingProgress(NamedTuple):
    """Steps taken, steps in total (None: not known yet) and the loss of the last step."""

    step: int
    steps: int | None
    loss: Tensor


class Score(NamedTuple):
    """Correctly classified test images, and all of them."""

    correct: int
    total: int


def take_steps(
    schedule: Schedule,
    batches: Iterable[tuple[Tensor, ...]],
    optimizer: Optimizer,
    step: Callable[..., Tensor],
) -> Iterator[TrainingProgress]:
    """Run a step on every batch, until the schedule ends."""
    budget = StepBudget(schedule.steps, schedule.seconds)
    for number, batch in enumerate(batches):
        if budget.steps is not None and number >= budget.steps:
            return
        set_learning_rate(optimizer, schedule.learning_rate_at(number, budget.steps))
        loss = step(*batch)
        budget.update(number + 1, loss)
        yield TrainingProgress(number + 1, budget.steps, loss)


def cosine_schedule(learning_rate: float, warm_up: int, step: int, steps: int | None) -> float:
    """The learning rate of a step: a linear warm-up, then a cosine down to 0 once `steps` is known."""
    if step < warm_up or steps is None:
        return learning_rate * min(1.0, (step + 1) / warm_up)
    progress = (step - warm_up) / max(1, steps - warm_up)
    return learning_rate * 0.5 * (1.0 + math.cos(math.pi * progress))


class StepBudget:
    """The number of steps: given, or as many as fit into the time at the speed of the first ones."""

    def __init__(self, steps: int | None, seconds: float) -> None:
        """Start the clock."""
        self.steps = steps
        self._seconds = seconds
        self._start = monotonic()
        self._timing_start = self._start

    def update(self, done: int, loss: Tensor) -> None:
        """Measure the time after `done` steps, until the number of steps is known."""
        if self.steps is None and done == UNTIMED:
            self._timing_start = _synchronized_time(loss)
        if self.steps is None and done == UNTIMED + TIMED:
            now = _synchronized_time(loss)
            left = _MARGIN * self._seconds - (now - self._start)
            self.steps = done + max(0, int(left * TIMED / max(now - self._timing_start, 1e-9)))


def _synchronized_time(loss: Tensor) -> float:
    """The time when a loss is computed: a GPU runs behind the host."""
    loss.item()
    return monotonic()
