"""Scenarios on the classes of a data set: which classes arrive in which task."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from everlearn.core.random import Purpose, permutation
from everlearn.stream.datasets.bands import count_sessions
from everlearn.stream.datasets.files import Arrays, Ints
from everlearn.stream.datasets.sources.nicv2 import NAMES, TASKS, FileLists
from everlearn.stream.scenarios.incremental import (
    ALIASES,
    SCENARIOS,
    DomainIncremental,
    NewInstancesAndClasses,
    find_scenario,
)
from everlearn.stream.scenarios.scenario import Arrival, ScenarioContext

if TYPE_CHECKING:
    from everlearn.stream.datasets.stream import ArrayStream

ORDERS = ("random", "natural")
_ORDER_SUBSTREAM = 3  # scenarios use the substreams below


def find_file_lists(scenario: Any) -> FileLists | None:
    """Return the official file lists that a scenario stands for, or None."""
    if isinstance(scenario, str) and scenario.lower() in NAMES:
        return FileLists(int(scenario.split("-")[1]))
    return scenario if isinstance(scenario, FileLists) else None


def fit_scenario(scenario: Any, arrays: Arrays, classes: int) -> Any:
    """Build a scenario from a name, with as many classes and sessions as the data have."""
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


def default_classes_per_task(scenario: Any, default: int, classes: int) -> int:
    """Return how many classes a task has where classes_per_task is not given."""
    if isinstance(scenario, FileLists):
        return TASKS[scenario.tasks]
    return {"domain": classes, "nic": 1}.get(scenario.name, min(default, classes))


def order_classes(classes: Ints, seed: int, order: str) -> Ints:
    """Return class ids in the order in which they arrive."""
    if order == "natural":
        return classes
    return classes[permutation(seed, Purpose.SCENARIO, 0, len(classes), substream=_ORDER_SUBSTREAM)]


def max_tasks(stream: ArrayStream, classes: int) -> int | None:
    """Return how many tasks the classes suffice for; None where classes only return."""
    scenario = stream.scenario
    if isinstance(scenario, FileLists):
        return scenario.tasks
    if scenario.name in ("domain", "nic"):
        return int(scenario.bands if scenario.name == "domain" else scenario.length)
    if scenario.name == "blurry":
        return classes // stream.scenario_context.classes_per_task
    starts = (scenario.arrivals(_context(stream, task), task)[0].label for task in count())
    return next(
        (task for task, start in zip(range(classes + 1), starts, strict=False) if start >= classes),
        None,
    )


def task_arrivals(stream: ArrayStream, arrays: Arrays, order: Ints, task: int) -> list[Arrival]:
    """List the classes that arrive with a task; the last task may have fewer than the others."""
    if isinstance(stream.scenario, FileLists):
        labels = arrays.labels[arrays.experiences == task]
        return [Arrival(label, task) for label in dict.fromkeys(labels.tolist())]
    context = _context(stream, task)._replace(classes=blurry_classes(stream, len(order)))
    arrivals = stream.scenario.arrivals(context, task)
    return [Arrival(int(order[a.label]), a.band) for a in arrivals if a.label < len(order)]


def blurry_classes(stream: ArrayStream, classes: int) -> int:
    """Count the classes of a blurry stream; classes left over by the last full task are included."""
    taken = len(stream) * stream.scenario_context.classes_per_task
    return classes if classes - taken < stream.scenario_context.classes_per_task else taken


def _context(stream: ArrayStream, task: int) -> ScenarioContext:
    """Return the settings that a scenario depends on; the first task may have another class count."""
    context = stream.scenario_context
    first = stream.first_classes
    if first is None:
        return context
    if task == 0:
        return context._replace(classes_per_task=first)
    return context._replace(first_class=first - context.classes_per_task)
