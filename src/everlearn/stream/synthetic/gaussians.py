"""Gaussians: a stream of points, for tests and experiments that take seconds.

The mean of every class is drawn from N(0, I); its points are N(mean, I).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from everlearn.core.random import Floats, Purpose, check_seed, normals
from everlearn.core.validate import check_int
from everlearn.stream.codec import decode, encode
from everlearn.stream.synthetic.points import FeatureCanvas, points_split
from everlearn.stream.task import Task, find_task

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
    """Tasks of points around class means.

    Args:
        seed: determines all random draws.
        tasks: the number of tasks.
        classes_per_task: the number of new classes per task.
        dimensions: the number of dimensions of a point.
        train: the number of training points per class.
        val: the number of validation points per class.
        test: the number of test points per class.
        online: whether every training point may be seen only once.
    """

    KEY: ClassVar = "everlearn_gaussians"
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
        for name, limit in _LIMITS.items():
            check_int(getattr(self, name), name, 0 if name == "val" else 1, limit)
        if not isinstance(self.online, bool):
            raise TypeError(f"online must be True or False, found {self.online!r}")

    @property
    def canvas(self) -> FeatureCanvas:
        """The shape of a point."""
        return FeatureCanvas(self.dimensions)

    @property
    def class_ids(self) -> range:
        """The ids of all classes."""
        return range(self.tasks * self.classes_per_task)

    def __len__(self) -> int:
        """Count the tasks."""
        return self.tasks

    def __getitem__(self, index: int) -> Task:
        """Make one task."""
        number = find_task(index, self.tasks)
        first = number * self.classes_per_task
        classes = tuple(range(first, first + self.classes_per_task))
        ends = np.cumsum([1, self.train, self.val, self.test])
        groups = np.split(self._points(classes), ends[:-1], axis=1)
        means, train, val, test = (points_split(classes, points) for points in groups)
        return Task(number, classes, train, val, test, means, self.seed, self.online)

    def __iter__(self) -> Iterator[Task]:
        """Iterate over the tasks; every pass gives the same ones."""
        return (self[number] for number in range(self.tasks))

    def _points(self, classes: tuple[int, ...]) -> Floats:
        """Return the mean of each class, then its points: (classes, 1 + rows, dimensions)."""
        rows = np.arange(1 + self.train + self.val + self.test)
        index = np.array(classes)[:, None]
        points = normals(self.seed, Purpose.POINTS, index, rows, count=self.dimensions)
        points[:, 1:] += points[:, :1]
        return points

    def to_json(self) -> str:
        """Return the settings as JSON."""
        return encode(self.KEY, asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Gaussians:
        """Build the stream that `to_json` described."""
        allowed = [item.name for item in fields(cls)]
        return cls(**decode(text, cls.KEY, allowed, "a stream of points"))

    def with_changes(self, **changes: Any) -> Gaussians:
        """Return a copy with some settings replaced."""
        return replace(self, **changes)
