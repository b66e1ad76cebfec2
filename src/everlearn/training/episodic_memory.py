"""The episodic memory of GEM and A-GEM: random images of each task, behind those of earlier tasks."""

from __future__ import annotations

import numpy as np

from everlearn.core.random import Purpose, permutation
from everlearn.memory import Buffer
from everlearn.stream import Task
from everlearn.training.trainer import Trainer


def append_random(trainer: Trainer, task: Task, count: int, buffer: Buffer) -> int:
    """Append up to `count` random images of a task to a buffer; return their number."""
    chosen = permutation(trainer.seed, Purpose.MEMORY, task.index, len(task.train))[:count]
    stored = task.train.batch(chosen, trainer.device)
    slots = buffer.filled + np.arange(len(chosen))
    buffer.put(slots, stored.images, trainer.model.targets(stored.labels))
    return len(chosen)
