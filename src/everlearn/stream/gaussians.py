"""Gaussians: a stream of points, for tests and first looks that take seconds instead of minutes.

Every class has a mean, drawn from N(0, I); its points are that mean with noise of N(0, I).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from everlearn.border import check_whole
from everlearn.philox import Floats, Purpose, check_seed, normals
from everlearn.stream.codec import read_settings
from everlearn.stream.points import Plain, split_of
from everlearn.stream.task import Task

KEY = "everlearn_gaussians"
FORMAT = 1
_LIMITS = {
    "tasks": 10**6,
    "classes_per_task": 10**4,
    "dimensions": 10**4,
    "train": 10**5,
    "val": 10**5,
    "test": 10**5,
}


@dataclass(frozen=True)
class Gaussians:
    """Tasks of points around class means; a pure function of a few numbers.

    Args:
        seed: everything follows from it.
        tasks: how many.
        classes_per_task: how many classes come with a task, all of them new.
        dimensions: of a point.
        train: points a class to learn from; likewise val and test.
        online: every training point may be seen once only.
    """

    seed: int = 0
    tasks: int = 5
    classes_per_task: int = 4
    dimensions: int = 32
    train: int = 200
    val: int = 20
    test: int = 50
    online: bool = False

    def __post_init__(self) -> None:
        """Check every setting."""
        check_seed(self.seed)
        for name, most in _LIMITS.items():
            check_whole(getattr(self, name), name, 0 if name == "val" else 1, most)
        if not isinstance(self.online, bool):
            raise TypeError(f"online must be True or False, found {self.online!r}")

    @property
    def canvas(self) -> Plain:
        """The shape of a point."""
        return Plain(self.dimensions)

    @property
    def class_ids(self) -> range:
        """The ids of all classes."""
        return range(self.tasks * self.classes_per_task)

    def __len__(self) -> int:
        """Count the tasks."""
        return self.tasks

    def __getitem__(self, index: int) -> Task:
        """Make any task."""
        number = int(index) + (self.tasks if index < 0 else 0)
        if not 0 <= number < self.tasks:
            raise IndexError(f"task {index} is not in the stream (0 .. {self.tasks - 1})")
        first = number * self.classes_per_task
        classes = tuple(range(first, first + self.classes_per_task))
        ends = np.cumsum([1, self.train, self.val, self.test])
        parts = np.split(self._points(classes), ends[:-1], axis=1)
        means, train, val, test = (split_of(classes, part) for part in parts)
        return Task(number, classes, train, val, test, means, self.seed, self.online)

    def __iter__(self) -> Iterator[Task]:
        """Go through the tasks; two passes give the same."""
        return (self[number] for number in range(self.tasks))

    def _points(self, classes: tuple[int, ...]) -> Floats:
        """The mean of each class, then its points: (classes, 1 + rows, dimensions)."""
        rows = np.arange(1 + self.train + self.val + self.test)
        index = np.array(classes)[:, None]
        points = normals(self.seed, Purpose.POINTS, index, rows, count=self.dimensions)
        points[:, 1:] += points[:, :1]
        return points

    def to_json(self) -> str:
        """Write the stream as a small JSON text."""
        return json.dumps({KEY: FORMAT, **asdict(self)}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Gaussians:
        """Read a stream back, equal to the one written."""
        allowed = [item.name for item in fields(cls)]
        return cls(**read_settings(text, KEY, FORMAT, allowed, "a stream of points"))

    def with_changes(self, **changes: Any) -> Gaussians:
        """The same stream but for some settings."""
        return replace(self, **changes)
