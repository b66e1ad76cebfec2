"""The preset `pictures` on a CPU, in 3 epochs: fine-tuning forgets, joint training and replay do not."""

from __future__ import annotations

from typing import Any

import pytest

from everlearn.evaluate import run
from everlearn.evaluation import Plan
from everlearn.methods import build
from everlearn.metrics import average_accuracy, table
from everlearn.runs.presets import PRESETS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def accuracy(name: str, **changes: Any) -> float:
    preset = PRESETS["pictures"]
    short = preset.settings_of(name) | {"epochs": 3} | changes
    learner = build(name, preset.stream, "cpu", **short)
    return average_accuracy(table(list(run(preset.stream, learner, Plan(every=5)))))


def test_fine_tuning_keeps_one_task_of_five() -> None:
    assert accuracy("fine-tuning") <= 0.25


def test_joint_training_keeps_all_tasks() -> None:
    assert accuracy("joint", retrain_every=5) >= 0.90


def test_replay_keeps_much_more_than_fine_tuning() -> None:
    assert accuracy("er", buffer_size=500) >= 0.25 + 0.3
