"""What tests of methods share: settings for points, and how tasks are learned.

Test files say `from .conftest import`: pytest has loaded it by then, whatever folders are on the path.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from everlearn.presets import PRESETS
from everlearn.stream import Task

# Epochs are named, though 5 is fine-tuning's own: some tests change settings that have fewer.
TOY = PRESETS["toy"].settings_of("fine-tuning") | {"epochs": 5}


def learn(learner: Any, tasks: Iterable[Task]) -> Any:
    """Learn tasks to their ends."""
    for task in tasks:
        for _ in learner.learn(task):
            pass
    return learner
