"""The small protocol of the specification, twelve tasks on a CPU: D8, D9 and D10."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from everlearn.evaluate import run
from everlearn.methods import build
from everlearn.metrics import curve, theta_errors
from everlearn.presets import PRESETS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def within(rows: list[dict[str, Any]], learned: int) -> int:
    (found,) = (
        row["right"]
        for row in rows
        if row["kind"] == "within" and (row["learned"], row["tested"]) == (learned, 0)
    )
    return int(found)


def test_d8_d9_and_d10_hold() -> None:
    """One test for all: its run takes minutes, and workers that share tests would repeat it."""
    preset = PRESETS["small"]
    learner = build("dcl-plus", preset.stream, "cpu", **preset.settings_of("dcl-plus"))
    plan = replace(preset.plan, one_shot=())  # which has tests of its own
    rows = list(run(preset.stream, learner, plan))
    accuracy, unseen = curve(rows).accuracy, theta_errors(rows, new=True)
    assert accuracy[11] >= 0.85, "D8: accuracy on all tasks is high after twelve"
    assert accuracy[11] >= accuracy[2] - 0.05, "D8: and did not fall"
    assert unseen.learned.tolist() == list(range(12))
    assert unseen.every[11] <= 0.6 * unseen.every[0], "D9: maps of shapes never seen get better"
    assert within(rows, 11) >= within(rows, 0), "D10: the first task gains from later ones"
