"""Players: whoever says which choice shows the shape of a query, given the pictures alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from torch import Tensor

from everlearn.choice.questions import Question
from everlearn.learner import Remembers
from everlearn.philox import Purpose, check_seed, uniform

Answer = Callable[[Question], int]
# Questions draw from rows below, so a guess is no hint even where both have one seed.
_GUESS = 2**31


class Player(Protocol):
    """Sees pictures and chooses one."""

    def choose(self, query: Tensor, choices: Tensor) -> int:
        """Say which of the choices (n, C, H, W) shows the shape of the query (C, H, W); -1 for none."""


def looking(player: Player, device: str = "cpu") -> Answer:
    """Answer questions by drawing each and letting a player choose."""
    return lambda question: player.choose(*question.draw(device))


def guessing(seed: int = 0) -> Answer:
    """Answer questions without a look at them, every choice as likely."""
    check_seed(seed)

    def guess(question: Question) -> int:
        n, number = question.n, question.number
        return int(uniform(seed, Purpose.CHOICE, number, _GUESS | n)[0] * n)

    return guess


class Pixels:
    """Chooses the picture with the smallest mean squared difference from the query as it is."""

    def choose(self, query: Tensor, choices: Tensor) -> int:
        """Compare pixel by pixel."""
        return int((choices - query).square().flatten(1).mean(1).argmin())


class Recall:
    """Lets a learner with exemplars choose: the choices are its whole memory while it looks.

    Its net and its own memory stay as they are. Pictures must be of the size it has learned from.
    """

    def __init__(self, learner: Remembers) -> None:
        """Take a learner, such as dcl."""
        self.learner = learner

    def choose(self, query: Tensor, choices: Tensor) -> int:
        """Name the nearest exemplar."""
        memory = self.learner.memory.empty()
        memory.add(range(len(choices)), choices)
        found = self.learner.match(query[None].to(memory.device), memory, 1)
        return int(found.labels[0, 0])
