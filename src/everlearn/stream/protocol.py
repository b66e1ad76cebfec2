"""TaskStream: what every kind of stream offers to learners, evaluation, runs and reports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from everlearn.render.canvas import Canvas
from everlearn.stream.synthetic.points import FeatureCanvas
from everlearn.stream.task import Task


class TaskStream(Protocol):
    """A sequence of tasks that is a pure function of its settings.

    SpriteImages (`Stream`), data sets (`ArrayStream`), `Environments`, `Gaussians`, `Latents` and exported
    streams (`ExportedStream`) all satisfy it.
    """

    @property
    def seed(self) -> int:
        """The seed that all random draws follow from."""

    @property
    def tasks(self) -> int | None:
        """The number of tasks; None for an endless stream."""

    @property
    def canvas(self) -> Canvas | FeatureCanvas:
        """The size, channels and dtype of the images."""

    @property
    def online(self) -> bool:
        """Whether every training image may be seen only once."""

    @property
    def class_ids(self) -> range:
        """The ids that classes may have; a finite stream only."""

    def __len__(self) -> int:
        """Count the tasks; a finite stream only."""

    def __getitem__(self, index: int, /) -> Task:
        """Make one task."""

    def __iter__(self) -> Iterator[Task]:
        """Iterate over the tasks; every pass gives the same ones."""

    def to_json(self) -> str:
        """Return the settings as JSON, which `everlearn.stream.read_stream` reads."""

    def with_changes(self, **changes: Any) -> TaskStream:
        """Return a copy with some settings replaced."""
