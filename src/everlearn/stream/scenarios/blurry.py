"""Si-Blurry (Moon et al. 2023): random task sizes, and samples of some classes move between tasks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from everlearn.core.random import Purpose, permutation, random_uint64
from everlearn.core.validate import check_number
from everlearn.stream.scenarios.scenario import Arrival, ScenarioContext

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Blurry:
    """Si-Blurry (Moon et al. 2023): random task sizes, some classes leak into every task.

    Args:
        disjoint: per cent of the classes that stay in one task.
        blurred: per cent of the other classes' samples that move to a random task.
    """

    disjoint: float = 50
    blurred: float = 10
    name = "blurry"

    def __post_init__(self) -> None:
        """Check the two percentages."""
        for name in ("disjoint", "blurred"):
            value = check_number(getattr(self, name), name, 0, 100, " per cent")
            object.__setattr__(self, name, value)

    def check(self, context: ScenarioContext) -> None:
        """Raise for an endless stream: samples move between all tasks."""
        if context.tasks is None:
            raise ValueError(
                "scenario 'blurry' moves samples between all tasks; give a number of tasks"
            )

    def arrivals(self, context: ScenarioContext, task: int) -> list[Arrival]:
        """List the classes that this task is home to."""
        count = context.classes or (context.tasks or 0) * context.classes_per_task
        home = blurry_homes(context.seed, count, context.tasks or 0, self.disjoint)[0]
        return [Arrival(context.first_class + int(c)) for c in np.flatnonzero(home == task)]


@lru_cache(maxsize=4)
def blurry_homes(
    seed: int, classes: int, tasks: int, disjoint: float
) -> tuple[Ints, NDArray[np.bool_]]:
    """Return the home task of every class and whether it is blurry (steps 1 to 3 of Si-Blurry).

    Classes left over by rounding join the blurry ones.
    """
    in_one_task = _percentage(classes, disjoint) // tasks * tasks
    order = permutation(seed, Purpose.BLURRY, 0, classes)
    home = np.empty(classes, np.int64)
    home[order[:in_one_task]] = _random_runs(seed, in_one_task, tasks, 1)
    home[order[in_one_task:]] = _random_runs(seed, classes - in_one_task, tasks, 2)
    blurry = np.ones(classes, bool)
    blurry[order[:in_one_task]] = False
    return home, blurry


@lru_cache(maxsize=4)
def blurry_tasks(
    seed: int, classes: int, rows: int, tasks: int, disjoint: float, blurred: float
) -> tuple[Ints, ...]:
    """Return the samples of every task as class * rows + row (steps 4 to 6 of Si-Blurry).

    Every task puts up to its quota of randomly chosen blurry samples into one pool. The pool is dealt
    out again by quota, in proportion where some tasks had fewer to give, so that no sample is lost.
    """
    home, blurry = blurry_homes(seed, classes, tasks, disjoint)
    samples = permutation(seed, Purpose.BLURRY, 3, classes * rows)
    homes = home[samples // rows]
    at_home = np.split(
        samples[np.argsort(homes, kind="stable")], np.cumsum(np.bincount(homes, minlength=tasks))
    )
    moving = _percentage(blurry.sum() * rows, blurred)
    quota = np.bincount(_random_runs(seed, moving, tasks, 4), minlength=tasks)
    leaves = []
    for t in range(tasks):
        is_blurry = blurry[at_home[t] // rows]
        leaves.append(is_blurry & (np.cumsum(is_blurry) <= quota[t]))
    pool = np.concatenate([at_home[t][leaves[t]] for t in range(tasks)])
    pool = pool[permutation(seed, Purpose.BLURRY, 5, len(pool))]
    arriving = np.split(pool, np.cumsum(_apportion(quota, len(pool))))
    joined = [np.concatenate((at_home[t][~leaves[t]], arriving[t])) for t in range(tasks)]
    return tuple(
        task[permutation(seed, Purpose.BLURRY, 6 + t, len(task))] for t, task in enumerate(joined)
    )


def _percentage(count: int, per_cent: float) -> int:
    return int(count * per_cent / 100)


def _apportion(quota: Ints, total: int) -> Ints:
    """Divide `total` in proportion to the quota, rounding the largest remainders up."""
    exact = quota * (total / max(quota.sum(), 1))
    out: Ints = np.floor(exact).astype(np.int64)
    short = np.argsort(out - exact, kind="stable")[: total - out.sum()]
    out[short] += 1
    return out


def _random_runs(seed: int, count: int, tasks: int, substream: int) -> Ints:
    """Cut 0 .. count-1 into `tasks` runs of random length; return the run of each number."""
    if count == 0:
        return np.zeros(0, np.int64)
    draws = random_uint64(seed, Purpose.BLURRY, substream, 1 << 20, count=max(tasks - 1, 1))[
        : tasks - 1
    ]
    cuts = np.sort((draws % np.uint64(count)).astype(np.int64))
    return np.searchsorted(cuts, np.arange(count), side="right")
