"""Environments: a stream whose tasks are visual environments, in a given order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from everlearn.border import check_whole
from everlearn.philox import check_seed
from everlearn.render.canvas import Canvas
from everlearn.stream.arrays.files import data_folder
from everlearn.stream.arrays.sources.idx import CLASSES
from everlearn.stream.codec import read_settings
from everlearn.stream.environments.names import Environment, parse
from everlearn.stream.environments.task import build_environment
from everlearn.stream.task import Task, find_task

KEY = "everlearn_environments"
FORMAT = 1
SIZES = (16, 32, 64)
_LIMITS = {"train": 10**7, "test": 10**7, "shapes": 10**4}
_MOST = 10**4


@dataclass(frozen=True)
class Environments:
    """Tasks of items on a black canvas, an environment each; two streams are equal on any data folder.

    An environment is named [inverse-][moving-][scaled-][turned-]SOURCE. Items of a data set, mnist or
    fashion-mnist, stand in the middle or move by whole pixels; their factors x and y are the centre as
    a fraction of the canvas. Sprites (sprites, or sprites-K for the K-th set of shapes) are white, and
    have factors as everywhere. An inverse is 1 - x. Classes belong to the source: a digit has one id,
    moving or not. Training rows go through the official training images again and again, at other
    places each time; test rows are official test images, the same ones wherever an environment comes
    back. Data are read when a task is made, not before.

    Args:
        sequence: names of environments, in their order.
        data: folder of the data sets; EVERLEARN_DATA by default.
        seed: everything follows from it.
        tasks: how many of the sequence; None for all.
        size: side of the canvas, 16, 32 or 64 pixels; items of 28 x 28 at 64 shrink with it.
        train: training images a task.
        test: test images a task, at most; a data set may have fewer.
        shapes: how many shapes a set of sprites has.
        online: every training image may be seen once only.
    """

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
        """Check every setting and count the tasks; data are not looked at."""
        self._set("seed", check_seed(self.seed))
        if isinstance(self.sequence, str) or not isinstance(self.sequence, (tuple, list)):
            raise TypeError(f"sequence must be names of environments, found {self.sequence!r}")
        check_whole(len(self.sequence), "the length of the sequence", 1, _MOST)
        self._set("sequence", tuple(parse(name).name for name in self.sequence))
        most = len(self.sequence)
        tasks = most if self.tasks is None else check_whole(self.tasks, "tasks", 1, most)
        self._set("tasks", tasks)
        for name, high in _LIMITS.items():
            self._set(name, check_whole(getattr(self, name), name, 1, high))
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
        """What the tasks show."""
        return tuple(parse(name) for name in self.sequence[: self.tasks])

    @property
    def blocks(self) -> dict[str, range]:
        """The class ids of every source, in the order in which they come."""
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
        """What images look like: white on black."""
        return Canvas(self.size, 1, background="black", mark=None)

    def __len__(self) -> int:
        """Count the tasks."""
        return self.tasks or 0

    def __getitem__(self, index: int) -> Task:
        """Make any task."""
        return build_environment(self, find_task(index, len(self)))

    def __iter__(self) -> Iterator[Task]:
        """Go through the tasks; two passes give the same."""
        return (self[number] for number in range(len(self)))

    def to_json(self) -> str:
        """Write the stream as a small JSON text, without the data folder."""
        settings = {item.name: getattr(self, item.name) for item in fields(self) if item.compare}
        return json.dumps({KEY: FORMAT, **settings}, indent=1)

    @classmethod
    def from_json(cls, text: str, data: str | Path | None = None) -> Environments:
        """Read a stream back, equal to the one written, on the data of a folder."""
        allowed = [item.name for item in fields(cls) if item.compare]
        settings = read_settings(text, KEY, FORMAT, allowed, "a stream of environments")
        return cls(data=data, **settings)

    def with_changes(self, **changes: Any) -> Environments:
        """The same stream but for some settings; another sequence comes whole unless tasks are given."""
        anew: dict[str, Any] = {"tasks": None} if "sequence" in changes else {}
        return replace(self, **{**anew, **changes})
