"""The steps of a pre-training: how many there are, at which rate, and what to know after each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from time import monotonic
from typing import NamedTuple, Protocol

from torch import Tensor
from torch.optim import Optimizer

from everlearn.nets import fast

UNTIMED, TIMED = 10, 10  # the first steps: those that warm up, those that are timed
_MARGIN = 0.9  # of the time; the rest is for slow moments


class Pace(Protocol):
    """The settings that say how long and how fast."""

    @property
    def steps(self) -> int | None:
        """How many steps; None: as many as fit into the time."""

    @property
    def seconds(self) -> float:
        """The time."""

    def rate_at(self, step: int, steps: int | None) -> float:
        """The learning rate of a step, the first being 0; all steps need not be known at first."""


class Moment(NamedTuple):
    """After a step: how many there were, how many there will be (None: not known yet), the loss."""

    step: int
    steps: int | None
    loss: Tensor


class Score(NamedTuple):
    """Test images named right, of how many."""

    right: int
    total: int


def take_steps(
    pace: Pace,
    batches: Iterable[tuple[Tensor, ...]],
    optimizer: Optimizer,
    step: Callable[..., Tensor],
) -> Iterator[Moment]:
    """Do a step with every batch, as many as the pace has."""
    clock = Clock(pace.steps, pace.seconds)
    for number, batch in enumerate(batches):
        if clock.steps is not None and number >= clock.steps:
            return
        fast.set_rate(optimizer, pace.rate_at(number, clock.steps))
        loss = step(*batch)
        clock.tick(number + 1, loss)
        yield Moment(number + 1, clock.steps, loss)


def cosine_rate(rate: float, warm_up: int, step: int, steps: int | None) -> float:
    """The rate of a step: up in a line, then down to 0 along a cosine, once all steps are known."""
    if step < warm_up or steps is None:
        return rate * min(1.0, (step + 1) / warm_up)
    left = (step - warm_up) / max(1, steps - warm_up)
    return rate * 0.5 * (1.0 + math.cos(math.pi * left))


class Clock:
    """Finds how many steps fit into the time, from the speed of a few; or knows it from the start."""

    def __init__(self, steps: int | None, seconds: float) -> None:
        """Start now."""
        self.steps, self._seconds = steps, seconds
        self._began = self._warm = monotonic()

    def tick(self, done: int, loss: Tensor) -> None:
        """Look at the time after some steps."""
        if self.steps is None and done == UNTIMED:
            self._warm = _now(loss)
        if self.steps is None and done == UNTIMED + TIMED:
            now = _now(loss)
            left = _MARGIN * self._seconds - (now - self._began)
            self.steps = done + max(0, int(left * TIMED / max(now - self._warm, 1e-9)))


def _now(loss: Tensor) -> float:
    """The time when a loss is there: a GPU runs behind."""
    loss.item()
    return monotonic()
