"""Gaussians: a stream of points, for tests and first looks that take seconds instead of minutes.

Every class has a mean, drawn from N(0, I); its points are that mean with noise of N(0, I).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from everlearn.border import check_names, check_whole
from everlearn.philox import Floats, Purpose, check_seed, normal, uniform
from everlearn.stream.codec import read_object
from everlearn.stream.task import Split, Task

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
class Plain:
    """What stands in for a canvas: a point is an image of one pixel with many channels."""

    channels: int
    size: int = 1
    dtype: str = "float32"
    bits: int = 32

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of a point."""
        return self.channels, self.size, self.size


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
        means, train, val, test = (_split(classes, part) for part in parts)
        return Task(number, classes, train, val, test, means, self.seed, self.online)

    def __iter__(self) -> Iterator[Task]:
        """Go through the tasks; two passes give the same."""
        return (self[number] for number in range(self.tasks))

    def _points(self, classes: tuple[int, ...]) -> Floats:
        """The mean of each class, then its points: (classes, 1 + rows, dimensions)."""
        rows, pairs = 1 + self.train + self.val + self.test, -(-self.dimensions // 2)
        index, row = np.meshgrid(np.array(classes), np.arange(rows), indexing="ij")
        drawn = uniform(self.seed, Purpose.POINTS, index, row, count=2 * pairs)
        both = normal(drawn[..., :pairs], drawn[..., pairs:])
        points = np.concatenate(both, axis=-1)[..., : self.dimensions]
        points[:, 1:] += points[:, :1]
        return points

    def to_json(self) -> str:
        """Write the stream as a small JSON text."""
        return json.dumps({KEY: FORMAT, **asdict(self)}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Gaussians:
        """Read a stream back, equal to the one written."""
        settings = read_object(text, KEY)
        version = settings.pop(KEY)
        if version != FORMAT or isinstance(version, bool):
            raise ValueError(
                f"{KEY} must be {FORMAT}, found {version!r}; a newer everlearn may read it"
            )
        check_names(settings, [item.name for item in fields(cls)], "a stream of points")
        return cls(**settings)

    def with_changes(self, **changes: Any) -> Gaussians:
        """The same stream but for some settings."""
        return replace(self, **changes)


@dataclass(frozen=True, eq=False)
class Points:
    """Points as the pictures of a split, (rows, dimensions)."""

    points: NDArray[np.float32]

    def drawer(self, device: str) -> Callable[[Tensor], Tensor]:
        """Return a function from rows on the device to points there, (B, dimensions, 1, 1)."""
        placed = torch.from_numpy(self.points).to(device)[:, :, None, None]
        return lambda rows: placed[rows]


def _split(classes: tuple[int, ...], points: Floats) -> Split:
    """(classes, rows, dimensions) as a split, class by class."""
    labels = np.repeat(np.array(classes, np.int64), points.shape[1])
    return Split(labels, Points(points.reshape(len(labels), points.shape[2]).astype(np.float32)))
