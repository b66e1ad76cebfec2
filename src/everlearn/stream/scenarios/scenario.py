"""Scenario: for every task of a stream, the classes that arrive with it."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class ScenarioContext(NamedTuple):
    """The settings of a stream that its scenario depends on.

    Attributes:
        classes: the number of classes in total; None for tasks * classes_per_task.
    """

    seed: int
    tasks: int | None
    classes_per_task: int
    first_class: int
    classes: int | None = None


class Arrival(NamedTuple):
    """A class that arrives with a task, in one band of a factor; None for all bands."""

    label: int
    band: int | None = None


class Scenario(Protocol):
    """Which classes arrive with which task."""

    @property
    def name(self) -> str:
        """The key in SCENARIOS."""

    def check(self, context: ScenarioContext) -> None:
        """Raise ValueError where the stream cannot have this scenario."""

    def arrivals(self, context: ScenarioContext, task: int) -> list[Arrival]:
        """List the classes that arrive with a task, in order."""
