"""Scenarios: which classes arrive in which task, and from which band of a factor.

Each is a pure function of (seed, task): nothing but what its definition needs is computed.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from everlearn.factors import NAMES
from everlearn.philox import Purpose, permutation, words

Ints = NDArray[np.int64]


class Setting(NamedTuple):
    """What a scenario needs to know of its stream."""

    seed: int
    tasks: int | None
    classes_per_task: int
    first_class: int


class Arrival(NamedTuple):
    """A class that comes with a task; `band` is its part of the banded factor, None for all of it."""

    label: int
    band: int | None = None


class Scenario(Protocol):
    """An arrival plan for every task."""

    @property
    def name(self) -> str:
        """The name in SCENARIOS."""

    def check(self, setting: Setting) -> None:
        """Raise where the stream cannot have this scenario."""

    def arrivals(self, setting: Setting, task: int) -> list[Arrival]:
        """What comes with a task, in order."""


@dataclass(frozen=True)
class ClassIncremental:
    """New classes with every task (NC): task t brings classes c*t .. c*t + c-1."""

    name = "class"

    def check(self, setting: Setting) -> None:
        """Every stream will do."""

    def arrivals(self, setting: Setting, task: int) -> list[Arrival]:
        """The next block of classes."""
        return _next_block(setting, task)


@dataclass(frozen=True)
class TaskIncremental:
    """Like class-incremental, but the learner is told the task when tested."""

    name = "task"

    def check(self, setting: Setting) -> None:
        """Every stream will do."""

    def arrivals(self, setting: Setting, task: int) -> list[Arrival]:
        """The next block of classes."""
        return _next_block(setting, task)


def _next_block(setting: Setting, task: int) -> list[Arrival]:
    start = setting.first_class + task * setting.classes_per_task
    return [Arrival(start + i) for i in range(setting.classes_per_task)]


@dataclass(frozen=True)
class DomainIncremental:
    """All classes from the first task on; later tasks bring new bands of one factor (NI).

    Args:
        factor: which factor is cut into bands.
        bands: how many; task t shows band t modulo this.
    """

    factor: str = "orientation"
    bands: int = 10
    name = "domain"

    def __post_init__(self) -> None:
        """Check the band's factor and number."""
        _check_band(self.factor, self.bands, "bands")

    def check(self, setting: Setting) -> None:
        """Every stream will do."""

    def arrivals(self, setting: Setting, task: int) -> list[Arrival]:
        """The same classes, the next band."""
        first = setting.first_class
        return [Arrival(first + i, task % self.bands) for i in range(setting.classes_per_task)]


@dataclass(frozen=True)
class NewInstancesAndClasses:
    """Old classes come back in new sessions while new classes arrive (NIC, as NICv2 of CORe50).

    The first task shows `first` classes in one session each; every later task shows one class in one
    session. The defaults give 391 tasks.

    Args:
        classes: how many classes there are in all.
        sessions: how many bands the factor is cut into, a session each.
        first: classes of the first task.
        factor: what distinguishes sessions.
    """

    classes: int = 50
    sessions: int = 8
    first: int = 10
    factor: str = "orientation"
    name = "nic"

    def __post_init__(self) -> None:
        """Check that old and new classes both can come after the first task."""
        _check_band(self.factor, self.sessions, "sessions")
        _check_whole(self.classes, "classes", 2, 100_000)
        _check_whole(self.first, "first", 1, self.classes - 1)
        if self.sessions < 2:
            raise ValueError(
                "scenario 'nic' needs 2 sessions or more, so that a class can come back"
            )

    @property
    def length(self) -> int:
        """How many tasks it takes to show every class in every session once."""
        return 1 + self.classes * self.sessions - self.first

    def check(self, setting: Setting) -> None:
        """The stream ends when every session was shown."""
        if setting.tasks is None or setting.tasks > self.length:
            raise ValueError(
                f"scenario 'nic' with {self.classes} classes, {self.sessions} sessions and {self.first} "
                f"first classes has {self.length} tasks, found tasks={setting.tasks}; ask for at most "
                f"{self.length}, or for more classes or sessions"
            )

    def arrivals(self, setting: Setting, task: int) -> list[Arrival]:
        """Ten classes first, then one class of one session."""
        order = permutation(setting.seed, Purpose.SCENARIO, 0, self.classes, lane=1)
        session = permutation(setting.seed, Purpose.SCENARIO, 0, self.sessions, lane=2)
        head = [
            int(label) * self.sessions + int(session[i % self.sessions])
            for i, label in enumerate(order[: self.first])
        ]
        if task == 0:
            pairs = head
        else:
            rest = permutation(setting.seed, Purpose.SCENARIO, 0, self.classes * self.sessions)
            pairs = [int(rest[~np.isin(rest, head)][task - 1])]
        return [Arrival(setting.first_class + p // self.sessions, p % self.sessions) for p in pairs]


@dataclass(frozen=True)
class Recurring:
    """Every task after the first brings old classes again beside new ones.

    Args:
        share: part of each task's classes that were seen before.
    """

    share: float = 0.5
    name = "recurring"

    def __post_init__(self) -> None:
        """Check the share."""
        if isinstance(self.share, bool) or not isinstance(self.share, (int, float)):
            raise TypeError(f"share must be a number, found {self.share!r}")
        if not 0 <= self.share <= 1:
            raise ValueError(f"share must lie in 0 .. 1, found {self.share}")

    def check(self, setting: Setting) -> None:
        """Every stream will do."""

    def arrivals(self, setting: Setting, task: int) -> list[Arrival]:
        """New classes by count, old ones drawn from all before."""
        each = setting.classes_per_task
        old = 0 if task == 0 else round(self.share * each)
        known = 0 if task == 0 else each + (task - 1) * (each - round(self.share * each))
        chosen = _distinct(setting.seed, task, known, old)
        labels = [*(known + i for i in range(each - old)), *chosen]
        return [Arrival(setting.first_class + label) for label in labels]


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
        for key in ("disjoint", "blurred"):
            value = getattr(self, key)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise TypeError(f"{key} must be a number, found {value!r}")
            if not 0 <= value <= 100:
                raise ValueError(f"{key} must lie in 0 .. 100 per cent, found {value}")

    def check(self, setting: Setting) -> None:
        """Samples move between all tasks, so there must be a last one."""
        if setting.tasks is None:
            raise ValueError(
                "scenario 'blurry' moves samples between all tasks; give a number of tasks"
            )

    def arrivals(self, setting: Setting, task: int) -> list[Arrival]:
        """The classes whose home is this task."""
        count = (setting.tasks or 0) * setting.classes_per_task
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

    Every task gives up to its quota of blurry samples into one pool, chosen at random, and gets as
    many back from it, so that nothing is lost.
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
    back = np.split(pool, np.cumsum([part.sum() for part in given]))
    both = [np.concatenate((own[t][~given[t]], back[t])) for t in range(tasks)]
    return tuple(
        part[permutation(seed, Purpose.BLURRY, 6 + t, len(part))] for t, part in enumerate(both)
    )


def _share(count: int, per_cent: float) -> int:
    return int(count * per_cent / 100)


def _cut(seed: int, count: int, tasks: int, lane: int) -> Ints:
    """Part 0 .. count-1 into `tasks` runs of random length; the run of each."""
    if count == 0:
        return np.zeros(0, np.int64)
    draws = words(seed, Purpose.BLURRY, lane, 1 << 20, count=max(tasks - 1, 1))[: tasks - 1]
    cuts = np.sort((draws % np.uint64(count)).astype(np.int64))
    return np.searchsorted(cuts, np.arange(count), side="right")


def _distinct(seed: int, task: int, known: int, wanted: int) -> list[int]:
    """Draw `wanted` different numbers below `known`, at a cost that does not grow with it."""
    out: list[int] = []
    row = 0
    while len(out) < min(wanted, known):
        number = int(words(seed, Purpose.SCENARIO, task, row)[0] % np.uint64(known))
        row += 1
        if number not in out:
            out.append(number)
    return out


SCENARIOS: dict[str, type] = {
    kind.name: kind
    for kind in (
        ClassIncremental,
        TaskIncremental,
        DomainIncremental,
        NewInstancesAndClasses,
        Blurry,
        Recurring,
    )
}
ALIASES = {"nc": "class", "ni": "domain"}


def find_scenario(name: str, settings: dict[str, Any] | None = None) -> Scenario:
    """Build a scenario from its name and settings."""
    key = ALIASES.get(name.lower(), name.lower())
    if key not in SCENARIOS:
        raise ValueError(
            f"unknown scenario {name!r}; known: {', '.join(SCENARIOS)} (nc is class, ni is domain); "
            "online, imbalance, factors and held_out are settings of the stream"
        )
    settings = settings or {}
    allowed = set(asdict(SCENARIOS[key]()))
    if set(settings) - allowed:
        raise ValueError(
            f"unknown settings {sorted(set(settings) - allowed)} of scenario {key!r}; "
            f"allowed: {sorted(allowed) or 'none'}"
        )
    scenario: Scenario = SCENARIOS[key](**settings)
    return scenario


def _check_band(factor: str, bands: int, name: str) -> None:
    if factor not in NAMES[1:]:
        raise ValueError(f"factor must be one of {', '.join(NAMES[1:])}, found {factor!r}")
    _check_whole(bands, name, 1, 1_000_000)


def _check_whole(value: int, name: str, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, found {value!r}")
    if not low <= value <= high:
        raise ValueError(f"{name} must lie in {low} .. {high}, found {value}")
