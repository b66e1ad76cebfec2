"""Si-Blurry (Moon et al. 2023): task sizes are random and samples of some classes wander."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from everlearn.border import check_number
from everlearn.philox import Purpose, permutation, words
from everlearn.stream.arrivals import Arrival, Setting

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

    def check(self, setting: Setting) -> None:
        """Samples move between all tasks, so there must be a last one."""
        if setting.tasks is None:
            raise ValueError(
                "scenario 'blurry' moves samples between all tasks; give a number of tasks"
            )

    def arrivals(self, setting: Setting, task: int) -> list[Arrival]:
        """The classes whose home is this task."""
        count = setting.classes or (setting.tasks or 0) * setting.classes_per_task
        home = blurry_homes(setting.seed, count, setting.tasks or 0, self.disjoint)[0]
        return [Arrival(setting.first_class + int(c)) for c in np.flatnonzero(home == task)]


@lru_cache(maxsize=4)
def blurry_homes(
    seed: int, classes: int, tasks: int, disjoint: float
) -> tuple[Ints, NDArray[np.bool_]]:
    """The home task of every class, and whether it is blurry: steps 1 to 3 of Si-Blurry.

    Classes left over by rounding join the blurry ones.
    """
    apart = _share(classes, disjoint) // tasks * tasks
    order = permutation(seed, Purpose.BLURRY, 0, classes)
    home = np.empty(classes, np.int64)
    home[order[:apart]] = _cut(seed, apart, tasks, 1)
    home[order[apart:]] = _cut(seed, classes - apart, tasks, 2)
    blurry = np.ones(classes, bool)
    blurry[order[:apart]] = False
    return home, blurry


@lru_cache(maxsize=4)
def blurry_tasks(
    seed: int, classes: int, rows: int, tasks: int, disjoint: float, blurred: float
) -> tuple[Ints, ...]:
    """The samples of every task, as class * rows + row: steps 4 to 6 of Si-Blurry.

    Every task gives up to its quota of blurry samples into one pool, chosen at random. The pool is
    handed back by quota, proportionally where some tasks had less to give, so that nothing is lost.
    """
    home, blurry = blurry_homes(seed, classes, tasks, disjoint)
    sample = permutation(seed, Purpose.BLURRY, 3, classes * rows)
    at = home[sample // rows]
    own = np.split(
        sample[np.argsort(at, kind="stable")], np.cumsum(np.bincount(at, minlength=tasks))
    )
    quota = np.bincount(_cut(seed, _share(blurry.sum() * rows, blurred), tasks, 4), minlength=tasks)
    given = []
    for t in range(tasks):
        soft = blurry[own[t] // rows]
        given.append(soft & (np.cumsum(soft) <= quota[t]))
    pool = np.concatenate([own[t][given[t]] for t in range(tasks)])
    pool = pool[permutation(seed, Purpose.BLURRY, 5, len(pool))]
    back = np.split(pool, np.cumsum(_proportional(quota, len(pool))))
    both = [np.concatenate((own[t][~given[t]], back[t])) for t in range(tasks)]
    return tuple(
        part[permutation(seed, Purpose.BLURRY, 6 + t, len(part))] for t, part in enumerate(both)
    )


def _share(count: int, per_cent: float) -> int:
    return int(count * per_cent / 100)


def _proportional(quota: Ints, total: int) -> Ints:
    """Share `total` by quota, the largest remainders rounded up."""
    exact = quota * (total / max(quota.sum(), 1))
    out: Ints = np.floor(exact).astype(np.int64)
    short = np.argsort(out - exact, kind="stable")[: total - out.sum()]
    out[short] += 1
    return out


def _cut(seed: int, count: int, tasks: int, lane: int) -> Ints:
    """Part 0 .. count-1 into `tasks` runs of random length; the run of each."""
    if count == 0:
        return np.zeros(0, np.int64)
    draws = words(seed, Purpose.BLURRY, lane, 1 << 20, count=max(tasks - 1, 1))[: tasks - 1]
    cuts = np.sort((draws % np.uint64(count)).astype(np.int64))
    return np.searchsorted(cuts, np.arange(count), side="right")
