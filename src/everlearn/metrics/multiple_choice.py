"""Correct answers to multiple-choice questions, for each number of choices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from everlearn.metrics.proportion import share
from everlearn.rows import ChoiceRow


class Tally(NamedTuple):
    """Correct answers out of all answers."""

    correct: int
    total: int

    @property
    def accuracy(self) -> float:
        """Fraction of correct answers."""
        return float(share(self.correct, self.total))


def tally(rows: Iterable[ChoiceRow]) -> dict[int, Tally]:
    """Count the correct answers for each number of choices, rising."""
    answers: dict[int, list[bool]] = {}
    for row in rows:
        answers.setdefault(row["n"], []).append(row["chosen"] == row["answer"])
    return {n: Tally(sum(correct), len(correct)) for n, correct in sorted(answers.items())}
