"""How long to pre-train, and how fast."""

from __future__ import annotations

import math
from dataclasses import dataclass
from time import monotonic

from torch import Tensor

from everlearn.border import check_number, check_whole
from everlearn.nets.vit import CONFIGS
from everlearn.philox import check_seed
from everlearn.settings import setting

_UNTIMED, _TIMED = 10, 10  # the first steps: those that warm up, those that are timed
_MARGIN = 0.9  # of the time; the rest is for slow moments


@dataclass(frozen=True)
class Settings:
    """How long and how fast to pre-train."""

    steps: int | None = setting(None, "optimiser steps; none: as many as fit into the time")
    seconds: float = setting(240.0, "the time, where steps are not given")
    seed: int = setting(0, "first weights, order and moves follow from it")
    batch_size: int = setting(256, "images a step, half of each data set")
    rate: float = setting(1e-3, "of Adam, after the warm-up; it ends at 0 along a cosine")
    warm_up: int = setting(200, "steps in which the rate rises")
    test_images: int = setting(20_000, "of the official test images, at most, to test on")
    net: str = setting("vit-lite", "which transformer")

    def __post_init__(self) -> None:
        """Check every setting."""
        if self.steps is not None:
            check_whole(self.steps, "steps", 1, 10**9)
        check_number(self.seconds, "seconds", 1, 10**6)
        check_seed(self.seed)
        check_whole(self.batch_size, "batch_size", 2, 100_000)
        check_number(self.rate, "rate", 0, 1)
        check_whole(self.warm_up, "warm_up", _UNTIMED + _TIMED, 10**6)
        check_whole(self.test_images, "test_images", 2, 10**6)
        if self.net not in CONFIGS:
            raise ValueError(f"unknown net {self.net!r}; known: {', '.join(CONFIGS)}")

    def rate_at(self, step: int, steps: int | None) -> float:
        """The learning rate of a step, the first being 0; all steps need not be known in the warm-up."""
        if step < self.warm_up or steps is None:
            return self.rate * min(1.0, (step + 1) / self.warm_up)
        left = (step - self.warm_up) / max(1, steps - self.warm_up)
        return self.rate * 0.5 * (1.0 + math.cos(math.pi * left))


class Clock:
    """Finds how many steps fit into the time, from the speed of a few; or knows it from the start."""

    def __init__(self, settings: Settings) -> None:
        """Start now."""
        self.steps, self._seconds = settings.steps, settings.seconds
        self._began = self._warm = monotonic()

    def tick(self, done: int, loss: Tensor) -> None:
        """Look at the time after some steps."""
        if self.steps is None and done == _UNTIMED:
            self._warm = _now(loss)
        if self.steps is None and done == _UNTIMED + _TIMED:
            now = _now(loss)
            left = _MARGIN * self._seconds - (now - self._began)
            self.steps = done + max(0, int(left * _TIMED / max(now - self._warm, 1e-9)))


def _now(loss: Tensor) -> float:
    """The time when a loss is there: a GPU runs behind."""
    loss.item()
    return monotonic()
