"""LoadedRun: the content of a run folder. `everlearn.runs.load` reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from everlearn.core.jsonl import JsonObject
from everlearn.rows import Row, TaskRow, split_of


class LoadedRun(NamedTuple):
    """The content of a run folder.

    Attributes:
        label: the method, with the settings in which its runs differ.
        summary: as `everlearn.metrics.summarise` returns it.
        finished: whether the run is complete; otherwise the label tells its progress.
        stream: the content of stream.json, with the seed.
        settings: the content of settings.json.
        sessions: date, command, machine and versions of each start or resume.
    """

    folder: Path
    method: str
    seed: int
    label: str
    rows: list[Row]
    costs: list[TaskRow]
    summary: dict[str, float | int | None]
    finished: bool
    stream: dict[str, Any]
    settings: dict[str, Any]
    sessions: list[JsonObject]

    @property
    def method_settings(self) -> dict[str, Any]:
        """The settings of the method; empty where they were not recorded."""
        settings: dict[str, Any] = self.settings.get("settings", {})
        return settings

    @property
    def trained_every(self) -> int:
        """After how many tasks the method is trained: 1 but for those that collect several first."""
        return int(self.method_settings.get("retrain_every", 1))

    @property
    def measured(self) -> bool:
        """Whether there is any test after a learned task."""
        return self.summary["average_accuracy"] is not None

    @property
    def split(self) -> str:
        """The images of the run's rows: test or val; mixed rows raise."""
        return split_of(self.rows, str(self.folder))
