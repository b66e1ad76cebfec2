"""Weights & Biases: one of its runs a run, gone on with under the same id."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

from everlearn.disk import write_file
from everlearn.trackers.origin import Config, logs
from everlearn.trackers.tracker import told


class Wandb:
    """A run of W&B; it goes online, offline or nowhere, as WANDB_MODE says."""

    def __init__(self, folder: Path, config: Config, first: int) -> None:
        """Begin a run of W&B, or go on with the one of this folder; its files are in logs/wandb."""
        import wandb
        from wandb.errors import Error

        self._errors = (Error, OSError)
        place = logs(folder)
        with told("wandb", *self._errors):
            self._run = wandb.init(
                project=os.environ.get("WANDB_PROJECT", "everlearn"),
                name=place.parent.name,
                id=_find_id(place / "wandb-id"),
                dir=place,
                config=config,
                allow_val_change=True,
                resume="allow",
                # What the run prints is for who started it.
                settings=wandb.Settings(console="off"),
            )

    def write(self, step: int, numbers: Mapping[str, float]) -> None:
        """Write numbers at a step; of a step before the last one, W&B takes none."""
        with told("wandb", *self._errors):
            self._run.log(dict(numbers), step=step)

    def close(self, finished: bool) -> None:
        """Wait until all is written; a run that may go on is marked as failed."""
        with told("wandb", *self._errors):
            self._run.finish(exit_code=0 if finished else 1)


def _find_id(path: Path) -> str:
    """The id of the folder's run, made up at its first session."""
    if not path.exists():
        write_file(path, uuid4().hex.encode())
    return path.read_text()
