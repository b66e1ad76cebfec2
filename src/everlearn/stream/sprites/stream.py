"""Stream: a benchmark of any length as a pure function of a few settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from everlearn.core.random import check_seed
from everlearn.core.validate import check_int, check_number
from everlearn.factors import Space, check_space, continuous_space, grid_space
from everlearn.render.canvas import Canvas
from everlearn.shapes import PAPER_STYLE, ShapeStyle
from everlearn.stream.scenarios.incremental import ClassIncremental, find_scenario
from everlearn.stream.scenarios.scenario import ScenarioContext
from everlearn.stream.split import check_split, is_counts
from everlearn.stream.sprites import codec
from everlearn.stream.sprites.class_spaces import check_spaces
from everlearn.stream.sprites.task import build_task, exemplar_split
from everlearn.stream.task import Batch, Task

PAPER_CANVAS = Canvas()
PAPER_SCENARIO = ClassIncremental()
_MAX_TASKS = 2**40
_MAX_ROWS = 10_000_000
_LIMITS = (
    ("classes_per_task", 1, 100_000),
    ("values_per_factor", 1, 64),
    ("first_class", 0, 2**62),
)


@dataclass(frozen=True)
class Stream:
    """Tasks of sprites; `stream[t]` costs the same for every t. The defaults are the paper's benchmark.

    Args:
        seed: determines all random draws.
        tasks: the number of tasks; None for an endless stream.
        classes_per_task: the number of classes per task.
        values_per_factor: the number of grid values of each of scale, orientation, x and y.
        canvas: the size and colours of images.
        scenario: a name (class, task, domain, nic, blurry, recurring) or a scenario object.
        split: train, val and test as fractions, or as numbers of rows per task.
        factors: a space of factors instead of the grid.
        test_factors: another space to test on, or "continuous" for the ranges between grid values.
        held_out: combinations of factors that are never trained on; they are the test set.
        orientation_grid: "paper" (uneven, as in the original) or "even".
        style: the distribution that shapes are drawn from.
        online: whether every training row may be seen only once.
        imbalance: how many times more training rows the largest class of a task has than the smallest.
        first_class: id of the first class; other ids give other shapes.
    """

    KEY: ClassVar = codec.KEY
    seed: int = 0
    tasks: int | None = 500
    classes_per_task: int = 10
    values_per_factor: int = 5
    canvas: Canvas = PAPER_CANVAS
    scenario: Any = PAPER_SCENARIO
    split: tuple[float, float, float] = (0.96, 0.024, 0.016)
    factors: Space | None = None
    test_factors: Any = None
    held_out: Space | None = None
    orientation_grid: str = "paper"
    style: ShapeStyle = PAPER_STYLE
    online: bool = False
    imbalance: float = 1.0
    first_class: int = 0

    def __post_init__(self) -> None:
        """Check every setting."""
        self._set("seed", check_seed(self.seed))
        if self.tasks is not None:
            hint = "; None for an endless stream"
            self._set("tasks", check_int(self.tasks, "tasks", 1, _MAX_TASKS, hint))
        for name, low, high in _LIMITS:
            self._set(name, check_int(getattr(self, name), name, low, high))
        self._set("split", check_split(self.split))
        for name, kind in (("canvas", Canvas), ("style", ShapeStyle), ("online", bool)):
            if not isinstance(getattr(self, name), kind):
                raise TypeError(f"{name} must be a {kind.__name__}, found {getattr(self, name)!r}")
        self._set(
            "imbalance", check_number(self.imbalance, "imbalance", 1, 1e6, " (1 is balanced)")
        )
        self._check_scenario()
        self._check_spaces()
        self._check_rows()

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _check_scenario(self) -> None:
        if isinstance(self.scenario, str):
            self._set("scenario", find_scenario(self.scenario))
        if not isinstance(getattr(self.scenario, "name", None), str):
            raise TypeError(f"scenario must be a name or a scenario, found {self.scenario!r}")
        self.scenario.check(self.scenario_context)

    def _check_spaces(self) -> None:
        colors = len(self.canvas.colors)
        grid_space(self.values_per_factor, colors=colors, orientation=self.orientation_grid)
        if isinstance(self.test_factors, str):
            if self.test_factors != "continuous":
                raise ValueError(
                    f"test_factors must be a space or 'continuous', found {self.test_factors!r}"
                )
            self._set("test_factors", continuous_space(colors=colors))
        for name in ("factors", "test_factors", "held_out"):
            if getattr(self, name) is not None:
                check_space(getattr(self, name), name, None if name == "held_out" else colors)
        if self.held_out is not None and self.test_factors is not None:
            raise ValueError(
                "give held_out or test_factors, not both: held-out rows are the test set"
            )

    def _check_rows(self) -> None:
        if is_counts(self.split) and any(part % self.classes_per_task for part in self.split):
            raise ValueError(
                f"split {self.split} must divide evenly among {self.classes_per_task} classes per task; "
                "choose multiples of it, or fractions such as (0.96, 0.024, 0.016)"
            )
        classes = max(self.classes_per_task, getattr(self.scenario, "first", 0))
        if self.scenario.name == "blurry":
            classes = len(self) * self.classes_per_task
        if self.factors is None:
            _check_size(classes * len(self.canvas.colors) * self.values_per_factor**4)
        _check_size(classes * check_spaces(self))

    @property
    def scenario_context(self) -> ScenarioContext:
        """The settings that the scenario depends on."""
        return ScenarioContext(self.seed, self.tasks, self.classes_per_task, self.first_class)

    @property
    def space(self) -> Space:
        """The space of factors: the one given, or the grid."""
        if self.factors is not None:
            return self.factors
        return grid_space(
            self.values_per_factor,
            colors=len(self.canvas.colors),
            orientation=self.orientation_grid,
        )

    @property
    def class_ids(self) -> range:
        """The ids that classes may have; a finite stream only."""
        each = self.classes_per_task
        if self.scenario.name in ("domain", "nic"):
            count = getattr(self.scenario, "classes", each)
        else:
            count = len(self) * each
        return range(self.first_class, self.first_class + count)

    def exemplars(self, classes: Sequence[int], device: str = "cpu") -> Batch:
        """Return the canonical image of any classes, in the order given."""
        return exemplar_split(self, classes).batch(slice(None), device)

    def __len__(self) -> int:
        """Count the tasks of a finite stream."""
        if self.tasks is None:
            raise TypeError("an endless stream has no length; take as many tasks as you need")
        return self.tasks

    def __getitem__(self, index: int) -> Task:
        """Make one task, in constant time."""
        if isinstance(index, bool) or not isinstance(index, (int, np.integer)):
            raise TypeError(f"a task is chosen by a whole number, found {index!r}")
        number = int(index) + (len(self) if index < 0 else 0)
        if number < 0 or (self.tasks is not None and number >= self.tasks) or number >= _MAX_TASKS:
            last = "endless" if self.tasks is None else f"0 .. {self.tasks - 1}"
            raise IndexError(f"task {index} is not in the stream ({last})")
        return build_task(self, number)

    def __iter__(self) -> Iterator[Task]:
        """Iterate over the tasks; every pass gives the same ones."""
        number = 0
        while self.tasks is None or number < self.tasks:
            yield self[number]
            number += 1

    def to_json(self) -> str:
        """Return the settings as JSON."""
        return codec.encode_stream(self)

    @classmethod
    def from_json(cls, text: str) -> Stream:
        """Build the stream that `to_json` described."""
        return cls(**codec.decode_stream(text, [item.name for item in fields(cls)]))

    def with_changes(self, **changes: Any) -> Stream:
        """Return a copy with some settings replaced."""
        return replace(self, **changes)


def _check_size(rows: int) -> None:
    if rows > _MAX_ROWS:
        raise ValueError(
            f"{rows} rows would be made at once; at most {_MAX_ROWS}: lower values_per_factor, "
            "classes_per_task, the split, or the tasks of a blurry stream"
        )
