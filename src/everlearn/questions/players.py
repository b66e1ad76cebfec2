"""Players: they choose the picture that shows the shape of a query, from the pictures alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from torch import Tensor

from everlearn.core.random import Purpose, check_seed, uniform
from everlearn.learner import HasMemory
from everlearn.questions.question import Question

Answer = Callable[[Question], int]
# Questions use row numbers below this, so guesses are independent of questions with the same seed.
_GUESS = 2**31


class Player(Protocol):
    """Sees pictures and chooses one."""

    def choose(self, query: Tensor, choices: Tensor) -> int:
        """Return which of the choices (n, C, H, W) shows the shape of the query (C, H, W); -1 for none."""


def by_pictures(player: Player, device: str = "cpu") -> Answer:
    """Answer questions by drawing each and letting a player choose."""
    return lambda question: player.choose(*question.draw(device))


def at_random(seed: int = 0) -> Answer:
    """Answer questions uniformly at random, without looking at them."""
    check_seed(seed)

    def guess(question: Question) -> int:
        n, number = question.n, question.number
        return int(uniform(seed, Purpose.CHOICE, number, _GUESS | n)[0] * n)

    return guess


class NearestPixels:
    """Chooses the picture with the smallest mean squared difference from the query."""

    def choose(self, query: Tensor, choices: Tensor) -> int:
        """Compare pixel by pixel."""
        return int((choices - query).square().flatten(1).mean(1).argmin())


class LearnerPlayer:
    """Lets a learner with an exemplar memory choose: the choices serve as its memory for one question.

    Its net and its memory do not change. Pictures must have the size that it was trained on.
    """

    def __init__(self, learner: HasMemory) -> None:
        """Take a learner, such as dcl."""
        self.learner = learner

    def choose(self, query: Tensor, choices: Tensor) -> int:
        """Return the nearest exemplar."""
        memory = self.learner.memory.empty()
        memory.add(range(len(choices)), choices)
        found = self.learner.match(query[None].to(memory.device), memory, 1)
        return int(found.labels[0, 0])
