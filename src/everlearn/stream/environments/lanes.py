"""Where the rows of an environment come from: a lane of random numbers of their own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from everlearn.philox import Floats, Purpose, permutation, uniform
from everlearn.stream.environments.names import Environment
from everlearn.stream.task import Ints


class Lane(NamedTuple):
    """So many rows; no two lanes share a number."""

    seed: int
    key: int
    rows: int

    def uniforms(self, count: int) -> Floats:
        """`count` numbers on [0, 1) for every row, (rows, count)."""
        rows = np.arange(self.rows)
        return uniform(self.seed, Purpose.ENVIRONMENTS, self.key, rows, count=count)

    def items(self, count: int) -> Ints:
        """Which of `count` items every row shows: pass after pass over all, each in an order of its own."""
        out = np.empty(self.rows, np.int64)
        for number, start in enumerate(range(0, self.rows, count)):
            order = permutation(self.seed, Purpose.ENVIRONMENTS, self.key, count, lane=number)
            out[start : start + count] = order[: self.rows - start]
        return out


def train_lane(seed: int, environment: Environment, task: int, rows: int) -> Lane:
    """The lane of training rows, another one in every task."""
    return Lane(seed, environment.code << 32 | task + 1, rows)


def test_lane(seed: int, environment: Environment, rows: int) -> Lane:
    """The lane of test rows, the same one wherever the environment comes back."""
    return Lane(seed, environment.code << 32, rows)
