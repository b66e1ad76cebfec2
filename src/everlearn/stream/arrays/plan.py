"""Which classes of a data set come in which task: the scenarios of streams, on real classes."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from everlearn.philox import Purpose, permutation
from everlearn.stream.arrays.bands import count_sessions
from everlearn.stream.arrays.files import Arrays, Ints
from everlearn.stream.arrays.sources.nicv2 import NAMES, TASKS, FileLists
from everlearn.stream.arrivals import Arrival, Setting
from everlearn.stream.scenarios import (
    ALIASES,
    SCENARIOS,
    DomainIncremental,
    NewInstancesAndClasses,
    find_scenario,
)

if TYPE_CHECKING:
    from everlearn.stream.arrays.spec import ArrayStream

ORDERS = ("random", "natural")
_ORDER_LANE = 3  # scenarios use the lanes below


def find_lists(scenario: Any) -> FileLists | None:
    """The official lists that a scenario stands for, or None."""
    if isinstance(scenario, str) and scenario.lower() in NAMES:
        return FileLists(int(scenario.split("-")[1]))
    return scenario if isinstance(scenario, FileLists) else None


def fit_scenario(scenario: Any, arrays: Arrays, classes: int) -> Any:
    """Make a scenario of a name, with as many classes and sessions as the data have."""
    if not isinstance(scenario, str):
        if not isinstance(getattr(scenario, "name", None), str):
            raise TypeError(f"scenario must be a name or a scenario, found {scenario!r}")
        return scenario
    key = ALIASES.get(scenario.lower(), scenario.lower())
    sessions = count_sessions(arrays)
    if key not in SCENARIOS:
        known = ", ".join((*SCENARIOS, *NAMES))
        raise ValueError(f"unknown scenario {scenario!r}; known: {known} (nc is class, ni domain)")
    if key == "domain" and sessions is not None:
        return DomainIncremental(bands=sessions)
    if key == "nic":
        return NewInstancesAndClasses(classes, sessions or 8, min(10, classes - 1))
    return find_scenario(key)


def usual_classes(scenario: Any, usual: int, classes: int) -> int:
    """How many classes a task has unless it is said."""
    if isinstance(scenario, FileLists):
        return TASKS[scenario.tasks]
    return {"domain": classes, "nic": 1}.get(scenario.name, min(usual, classes))


def order_classes(classes: Ints, seed: int, order: str) -> Ints:
    """Class ids in the order in which a scenario counts them."""
    if order == "natural":
        return classes
    return classes[permutation(seed, Purpose.SCENARIO, 0, len(classes), lane=_ORDER_LANE)]


def most_tasks(stream: ArrayStream, classes: int) -> int | None:
    """How many tasks the data are enough for; None where classes only come back."""
    scenario = stream.scenario
    if isinstance(scenario, FileLists):
        return scenario.tasks
    if scenario.name in ("domain", "nic"):
        return int(scenario.bands if scenario.name == "domain" else scenario.length)
    if scenario.name == "blurry":
        return classes // stream.setting.classes_per_task
    starts = (scenario.arrivals(_setting(stream, task), task)[0].label for task in count())
    return next(
        (task for task, start in zip(range(classes + 1), starts, strict=False) if start >= classes),
        None,
    )


def plan_task(stream: ArrayStream, arrays: Arrays, order: Ints, task: int) -> list[Arrival]:
    """What comes with a task, by class id; the last task may have fewer classes than the others."""
    if isinstance(stream.scenario, FileLists):
        labels = arrays.labels[arrays.experiences == task]
        return [Arrival(label, task) for label in dict.fromkeys(labels.tolist())]
    setting = _setting(stream, task)._replace(classes=blurry_classes(stream, len(order)))
    arrivals = stream.scenario.arrivals(setting, task)
    return [Arrival(int(order[a.label]), a.band) for a in arrivals if a.label < len(order)]


def blurry_classes(stream: ArrayStream, classes: int) -> int:
    """How many classes a blurry stream has; those left over by whole tasks come too."""
    taken = len(stream) * stream.setting.classes_per_task
    return classes if classes - taken < stream.setting.classes_per_task else taken


def _setting(stream: ArrayStream, task: int) -> Setting:
    """What a scenario needs to know; the first task may have its own number of classes."""
    setting, first = stream.setting, stream.first_classes
    if first is None:
        return setting
    if task == 0:
        return setting._replace(classes_per_task=first)
    return setting._replace(first_class=first - setting.classes_per_task)
