"""What a scenario is: for every task of a stream, the classes that arrive with it."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Setting(NamedTuple):
    """What a scenario needs to know of its stream; `classes` is how many there are in all, if not
    tasks times classes_per_task.
    """

    seed: int
    tasks: int | None
    classes_per_task: int
    first_class: int
    classes: int | None = None


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
