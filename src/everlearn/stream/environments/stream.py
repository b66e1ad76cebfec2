"""Environments: a stream of visual environments in a given order, one per task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar

from everlearn.core.random import check_seed
from everlearn.core.validate import check_int
from everlearn.render.canvas import Canvas
from everlearn.stream.codec import decode, encode
from everlearn.stream.datasets.files import data_folder
from everlearn.stream.datasets.sources.idx import CLASSES
from everlearn.stream.environments.environment import Environment, parse_environment
from everlearn.stream.environments.task import build_environment
from everlearn.stream.task import Task, find_task

SIZES = (16, 32, 64)
_LIMITS = {"train": 10**7, "test": 10**7, "shapes": 10**4}
_MAX_LENGTH = 10**4


@dataclass(frozen=True)
class Environments:
    """Tasks of items on a black canvas; every task is one environment.

    An environment is named `[inverse-][moving-][scaled-][turned-]SOURCE`. Items of a data set, mnist or
    fashion-mnist, are centred or shifted by whole pixels; their factors x and y are the centre as a
    fraction of the canvas. Sprites (sprites, or sprites-K for the K-th set of shapes) are white. An
    inverse environment shows 1 - image. Classes belong to the source: a digit has the same id whether
    it moves or not. Training rows cycle through the official training images, at new positions each
    time; test rows are official test images, the same wherever an environment returns. Data are read
    when a task is made. The data folder plays no part in equality.

    Args:
        sequence: the names of the environments, in order.
        data: folder of the data sets; EVERLEARN_DATA by default.
        seed: determines all random draws.
        tasks: how many environments of the sequence to use; None for all.
        size: side of the canvas, 16, 32 or 64 pixels; items of 28 x 28 at 64 shrink with it.
        train: the number of training images per task.
        test: the largest number of test images per task; a data set may have fewer.
        shapes: the number of shapes in a set of sprites.
        online: whether every training image may be seen only once.
    """

    KEY: ClassVar = "everlearn_environments"
    sequence: tuple[str, ...] = ("moving-fashion-mnist", "mnist", "moving-mnist")
    data: str | Path | None = field(default=None, compare=False)
    seed: int = 0
    tasks: int | None = None
    size: int = 64
    train: int = 60_000
    test: int = 10_000
    shapes: int = 10
    online: bool = False

    def __post_init__(self) -> None:
        """Check every setting and count the tasks; no data are read."""
        self._set("seed", check_seed(self.seed))
        if isinstance(self.sequence, str) or not isinstance(self.sequence, (tuple, list)):
            raise TypeError(f"sequence must be names of environments, found {self.sequence!r}")
        check_int(len(self.sequence), "the length of the sequence", 1, _MAX_LENGTH)
        self._set("sequence", tuple(parse_environment(name).name for name in self.sequence))
        limit = len(self.sequence)
        tasks = limit if self.tasks is None else check_int(self.tasks, "tasks", 1, limit)
        self._set("tasks", tasks)
        for name, high in _LIMITS.items():
            self._set(name, check_int(getattr(self, name), name, 1, high))
        if isinstance(self.size, bool) or self.size not in SIZES:
            known = ", ".join(map(str, SIZES))
            raise ValueError(f"size of environments must be one of {known}, found {self.size!r}")
        if not isinstance(self.online, bool):
            raise TypeError(f"online must be True or False, found {self.online!r}")

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @property
    def folder(self) -> Path:
        """The data folder."""
        return data_folder(self.data)

    @property
    def environments(self) -> tuple[Environment, ...]:
        """The environment of every task."""
        return tuple(parse_environment(name) for name in self.sequence[: self.tasks])

    @property
    def blocks(self) -> dict[str, range]:
        """The class ids of every source, in order of first appearance."""
        blocks: dict[str, range] = {}
        for environment in self.environments:
            if environment.source not in blocks:
                start = sum(map(len, blocks.values()))
                count = CLASSES if environment.shape_set is None else self.shapes
                blocks[environment.source] = range(start, start + count)
        return blocks

    @property
    def class_ids(self) -> range:
        """The ids that classes may have."""
        return range(sum(map(len, self.blocks.values())))

    @property
    def canvas(self) -> Canvas:
        """The format of images: white on black."""
        return Canvas(self.size, 1, background="black", mark=None)

    def __len__(self) -> int:
        """Count the tasks."""
        return self.tasks or 0

    def __getitem__(self, index: int) -> Task:
        """Make one task."""
        return build_environment(self, find_task(index, len(self)))

    def __iter__(self) -> Iterator[Task]:
        """Iterate over the tasks; every pass gives the same ones."""
        return (self[number] for number in range(len(self)))

    def to_json(self) -> str:
        """Return the settings as JSON, without the data folder."""
        settings = {item.name: getattr(self, item.name) for item in fields(self) if item.compare}
        return encode(self.KEY, settings)

    @classmethod
    def from_json(cls, text: str, data: str | Path | None = None) -> Environments:
        """Build the stream that `to_json` described, over the data sets of a folder."""
        allowed = [item.name for item in fields(cls) if item.compare]
        settings = decode(text, cls.KEY, allowed, "a stream of environments")
        return cls(data=data, **settings)

    def with_changes(self, **changes: Any) -> Environments:
        """Return a copy with some settings replaced; a new sequence is used in full by default."""
        defaults: dict[str, Any] = {"tasks": None} if "sequence" in changes else {}
        return replace(self, **{**defaults, **changes})
