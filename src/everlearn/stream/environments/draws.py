"""RowDraws: the random numbers that determine the rows of a split of an environment."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from everlearn.core.random import Floats, Purpose, permutation, uniform
from everlearn.stream.environments.environment import Environment
from everlearn.stream.task import Ints


class RowDraws(NamedTuple):
    """The random numbers of a number of rows; different keys share none."""

    seed: int
    key: int
    rows: int

    def uniforms(self, count: int) -> Floats:
        """Return `count` numbers in [0, 1) per row, (rows, count)."""
        rows = np.arange(self.rows)
        return uniform(self.seed, Purpose.ENVIRONMENTS, self.key, rows, count=count)

    def items(self, count: int) -> Ints:
        """Return which of `count` items each row shows: repeated passes over all, reshuffled every time."""
        out = np.empty(self.rows, np.int64)
        for number, start in enumerate(range(0, self.rows, count)):
            order = permutation(self.seed, Purpose.ENVIRONMENTS, self.key, count, substream=number)
            out[start : start + count] = order[: self.rows - start]
        return out


def train_draws(seed: int, environment: Environment, task: int, rows: int) -> RowDraws:
    """Return the draws of training rows; they differ in every task."""
    return RowDraws(seed, environment.code << 32 | task + 1, rows)


def test_draws(seed: int, environment: Environment, rows: int) -> RowDraws:
    """Return the draws of test rows; they are the same wherever the environment returns."""
    return RowDraws(seed, environment.code << 32, rows)
