"""Scenarios: which classes arrive in which task, and in which band of a factor.

Each is a pure function of (seed, task).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from everlearn.core.random import Purpose, permutation, random_uint64
from everlearn.core.validate import check_int, check_names, check_number
from everlearn.factors import FACTOR_NAMES
from everlearn.stream.scenarios.blurry import Blurry
from everlearn.stream.scenarios.scenario import Arrival, Scenario, ScenarioContext

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

_MAX_PAIRS = 1_000_000


@dataclass(frozen=True)
class ClassIncremental:
    """New classes with every task (NC): task t brings classes c*t .. c*t + c-1."""

    name = "class"

    def check(self, context: ScenarioContext) -> None:
        """Accept every stream."""

    def arrivals(self, context: ScenarioContext, task: int) -> list[Arrival]:
        """List the next block of classes."""
        return _next_block(context, task)


@dataclass(frozen=True)
class TaskIncremental:
    """Like class-incremental, but the learner is given the task id at test time."""

    name = "task"

    def check(self, context: ScenarioContext) -> None:
        """Accept every stream."""

    def arrivals(self, context: ScenarioContext, task: int) -> list[Arrival]:
        """List the next block of classes."""
        return _next_block(context, task)


def _next_block(context: ScenarioContext, task: int) -> list[Arrival]:
    start = context.first_class + task * context.classes_per_task
    return [Arrival(start + i) for i in range(context.classes_per_task)]


@dataclass(frozen=True)
class DomainIncremental:
    """All classes from the first task on; later tasks bring new bands of one factor (NI).

    Args:
        factor: the factor that is cut into bands.
        bands: the number of bands; task t shows band t modulo this.
    """

    factor: str = "orientation"
    bands: int = 10
    name = "domain"

    def __post_init__(self) -> None:
        """Check the factor and the number of bands."""
        _check_factor(self.factor)
        object.__setattr__(self, "bands", check_int(self.bands, "bands", 1, 1_000_000))

    def check(self, context: ScenarioContext) -> None:
        """Accept every stream."""

    def arrivals(self, context: ScenarioContext, task: int) -> list[Arrival]:
        """List the same classes in the next band."""
        first = context.first_class
        return [Arrival(first + i, task % self.bands) for i in range(context.classes_per_task)]


@dataclass(frozen=True)
class NewInstancesAndClasses:
    """Old classes come back in new sessions while new classes arrive (NIC, as NICv2 of CORe50).

    The first task shows `first` classes in one session each; every later task shows one class in one
    session. The defaults give 391 tasks.

    Args:
        classes: the number of classes in total.
        sessions: the number of sessions; each is a band of the factor.
        first: the number of classes in the first task.
        factor: the factor that distinguishes sessions.
    """

    classes: int = 50
    sessions: int = 8
    first: int = 10
    factor: str = "orientation"
    name = "nic"

    def __post_init__(self) -> None:
        """Check that both old and new classes can arrive after the first task."""
        _check_factor(self.factor)
        for name, low, high in (("sessions", 1, 100_000), ("classes", 2, 100_000)):
            object.__setattr__(self, name, check_int(getattr(self, name), name, low, high))
        object.__setattr__(self, "first", check_int(self.first, "first", 1, self.classes - 1))
        if self.sessions < 2:
            raise ValueError(
                "scenario 'nic' needs 2 sessions or more, so that a class can come back"
            )
        if self.classes * self.sessions > _MAX_PAIRS:
            raise ValueError(
                f"scenario 'nic' may have {_MAX_PAIRS} pairs of class and session, found "
                f"{self.classes} classes and {self.sessions} sessions"
            )

    @property
    def length(self) -> int:
        """The number of tasks that show every class in every session once."""
        return 1 + self.classes * self.sessions - self.first

    def check(self, context: ScenarioContext) -> None:
        """Raise where the stream is longer than all pairs of class and session."""
        if context.tasks is None or context.tasks > self.length:
            raise ValueError(
                f"scenario 'nic' with {self.classes} classes, {self.sessions} sessions and {self.first} "
                f"first classes has {self.length} tasks, found tasks={context.tasks}; ask for at most "
                f"{self.length}, or for more classes or sessions"
            )

    def arrivals(self, context: ScenarioContext, task: int) -> list[Arrival]:
        """List the first classes, and later one class in one session."""
        order = permutation(context.seed, Purpose.SCENARIO, 0, self.classes, substream=1)
        session = permutation(context.seed, Purpose.SCENARIO, 0, self.sessions, substream=2)
        first_pairs = [
            int(label) * self.sessions + int(session[i % self.sessions])
            for i, label in enumerate(order[: self.first])
        ]
        if task == 0:
            pairs = first_pairs
        else:
            rest = permutation(context.seed, Purpose.SCENARIO, 0, self.classes * self.sessions)
            pairs = [int(rest[~np.isin(rest, first_pairs)][task - 1])]
        return [Arrival(context.first_class + p // self.sessions, p % self.sessions) for p in pairs]


@dataclass(frozen=True)
class Recurring:
    """Every task after the first repeats old classes beside new ones.

    Args:
        share: the fraction of each task's classes that were seen before.
    """

    share: float = 0.5
    name = "recurring"

    def __post_init__(self) -> None:
        """Check the share."""
        object.__setattr__(self, "share", check_number(self.share, "share", 0, 1))

    def check(self, context: ScenarioContext) -> None:
        """Raise where a share strictly between 0 and 1 leaves no room for old or for new classes."""
        each = context.classes_per_task
        old = round(self.share * each)
        if (self.share > 0 and old == 0) or (self.share < 1 and old == each):
            raise ValueError(
                f"scenario 'recurring' with share={self.share} of {each} classes a task would have "
                f"{old} old ones; give more classes_per_task or another share"
            )

    def arrivals(self, context: ScenarioContext, task: int) -> list[Arrival]:
        """List new classes in order, then old ones drawn from all before."""
        each = context.classes_per_task
        old = 0 if task == 0 else round(self.share * each)
        known = 0 if task == 0 else each + (task - 1) * (each - round(self.share * each))
        chosen = _distinct(context.seed, task, known, old)
        labels = [*(known + i for i in range(each - old)), *chosen]
        return [Arrival(context.first_class + label) for label in labels]


def _distinct(seed: int, task: int, known: int, wanted: int) -> list[int]:
    """Draw `wanted` different numbers below `known`, at a cost that does not grow with `known`."""
    if known <= 4 * wanted:
        return list(
            map(int, permutation(seed, Purpose.SCENARIO, task, known, substream=4)[:wanted])
        )
    rows = np.arange(4 * wanted + 64)
    numbers = random_uint64(seed, Purpose.SCENARIO, task, rows)[:, 0] % np.uint64(known)
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
    if factor not in FACTOR_NAMES[1:]:
        raise ValueError(f"factor must be one of {', '.join(FACTOR_NAMES[1:])}, found {factor!r}")
