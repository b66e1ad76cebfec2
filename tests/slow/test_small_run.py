"""The preset `small`, twelve tasks on a CPU: DCL+ keeps what it learned and improves with time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from everlearn.evaluate import run
from everlearn.methods import build
from everlearn.metrics import curve, theta_errors
from everlearn.runs.presets import PRESETS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def within(rows: list[dict[str, Any]], learned: int) -> int:
    (found,) = (
        row["correct"]
        for row in rows
        if row["kind"] == "within_task" and (row["learned"], row["tested"]) == (learned, 0)
    )
    return int(found)


def test_dcl_plus_improves_with_time_on_twelve_tasks() -> None:
    """One test for all: its run takes minutes, and workers that share tests would repeat it."""
    preset = PRESETS["small"]
    learner = build("dcl-plus", preset.stream, "cpu", **preset.settings_of("dcl-plus"))
    plan = replace(preset.plan, one_shot=())  # which has tests of its own
    rows = list(run(preset.stream, learner, plan))
    accuracy, unseen = curve(rows).accuracy, theta_errors(rows, new=True)
    assert accuracy[11] >= 0.85, "accuracy on all tasks is high after twelve"
    assert accuracy[11] >= accuracy[2] - 0.05, "it did not fall"
    assert unseen.learned.tolist() == list(range(12))
    assert unseen.overall[11] <= 0.6 * unseen.overall[0], "maps of shapes never seen get better"
    assert within(rows, 11) >= within(rows, 0), "the first task gains from later ones"
