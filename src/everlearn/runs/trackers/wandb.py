"""Weights & Biases: one of its runs for each run, resumed under the same id."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

from everlearn.core.files import write_file
from everlearn.runs.trackers.provenance import Config, log_folder
from everlearn.runs.trackers.tracker import tracker_errors


class Wandb:
    """A run of W&B: online, offline or disabled, as WANDB_MODE says."""

    def __init__(self, folder: Path, config: Config, first_step: int) -> None:
        """Begin a run of W&B, or resume the one of this folder; its files are in logs/wandb."""
        import wandb
        from wandb.errors import Error

        self._errors = (Error, OSError)
        logs = log_folder(folder)
        with tracker_errors("wandb", *self._errors):
            self._run = wandb.init(
                project=os.environ.get("WANDB_PROJECT", "everlearn"),
                name=logs.parent.name,
                id=_find_id(logs / "wandb-id"),
                dir=logs,
                config=config,
                allow_val_change=True,
                resume="allow",
                # The output of the run stays on the terminal.
                settings=wandb.Settings(console="off"),
            )

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write metrics at a step; W&B ignores steps before the last one."""
        with tracker_errors("wandb", *self._errors):
            self._run.log(dict(metrics), step=step)

    def close(self, finished: bool) -> None:
        """Wait until everything is written; a run that may be resumed is marked as failed."""
        with tracker_errors("wandb", *self._errors):
            self._run.finish(exit_code=0 if finished else 1)


def _find_id(path: Path) -> str:
    """Return the id of the folder's run, made in its first session."""
    if not path.exists():
        write_file(path, uuid4().hex.encode())
    return path.read_text()
