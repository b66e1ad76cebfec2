"""Scenarios: which classes arrive in which task, and from which band of a factor.

Each is a pure function of (seed, task): nothing but what its definition needs is computed.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from everlearn.border import check_names, check_number, check_whole
from everlearn.factors import NAMES
from everlearn.philox import Purpose, permutation, words
from everlearn.stream.arrivals import Arrival, Scenario, Setting
from everlearn.stream.blurry import Blurry

__all__ = [
    "SCENARIOS",
    "Blurry",
    "ClassIncremental",
    "DomainIncremental",
    "NewInstancesAndClasses",
    "Recurring",
    "TaskIncremental",
    "find_scenario",
]


_MOST_PAIRS = 1_000_000


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
        _check_factor(self.factor)
        object.__setattr__(self, "bands", check_whole(self.bands, "bands", 1, 1_000_000))

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
        _check_factor(self.factor)
        for name, low, high in (("sessions", 1, 100_000), ("classes", 2, 100_000)):
            object.__setattr__(self, name, check_whole(getattr(self, name), name, low, high))
        object.__setattr__(self, "first", check_whole(self.first, "first", 1, self.classes - 1))
        if self.sessions < 2:
            raise ValueError(
                "scenario 'nic' needs 2 sessions or more, so that a class can come back"
            )
        if self.classes * self.sessions > _MOST_PAIRS:
            raise ValueError(
                f"scenario 'nic' may have {_MOST_PAIRS} pairs of class and session, found "
                f"{self.classes} classes and {self.sessions} sessions"
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
        object.__setattr__(self, "share", check_number(self.share, "share", 0, 1))

    def check(self, setting: Setting) -> None:
        """A share that is neither nothing nor all must leave room for old and new classes."""
        each, old = setting.classes_per_task, round(self.share * setting.classes_per_task)
        if (self.share > 0 and old == 0) or (self.share < 1 and old == each):
            raise ValueError(
                f"scenario 'recurring' with share={self.share} of {each} classes a task would have "
                f"{old} old ones; give more classes_per_task or another share"
            )

    def arrivals(self, setting: Setting, task: int) -> list[Arrival]:
        """New classes by count, old ones drawn from all before."""
        each = setting.classes_per_task
        old = 0 if task == 0 else round(self.share * each)
        known = 0 if task == 0 else each + (task - 1) * (each - round(self.share * each))
        chosen = _distinct(setting.seed, task, known, old)
        labels = [*(known + i for i in range(each - old)), *chosen]
        return [Arrival(setting.first_class + label) for label in labels]


def _distinct(seed: int, task: int, known: int, wanted: int) -> list[int]:
    """Draw `wanted` different numbers below `known`, at a cost that does not grow with it."""
    if known <= 4 * wanted:
        return list(map(int, permutation(seed, Purpose.SCENARIO, task, known, lane=4)[:wanted]))
    rows = np.arange(4 * wanted + 64)
    numbers = words(seed, Purpose.SCENARIO, task, rows)[:, 0] % np.uint64(known)
    return list(dict.fromkeys(numbers.tolist()))[:wanted]


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
    check_names(settings, asdict(SCENARIOS[key]()), f"scenario {key!r}")
    scenario: Scenario = SCENARIOS[key](**settings)
    return scenario


def _check_factor(factor: str) -> None:
    if factor not in NAMES[1:]:
        raise ValueError(f"factor must be one of {', '.join(NAMES[1:])}, found {factor!r}")
