"""The small protocol of the specification, twelve tasks on a CPU: D8, D9 and D10."""

from __future__ import annotations

from typing import Any

import pytest

from everlearn.evaluate import run
from everlearn.methods import build
from everlearn.metrics import curve, theta_errors
from everlearn.presets import PRESETS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    preset = PRESETS["small"]
    learner = build("dcl-plus", preset.stream, "cpu", **preset.settings_of("dcl-plus"))
    return list(run(preset.stream, learner, preset.plan))


def within(rows: list[dict[str, Any]], learned: int) -> int:
    (found,) = (
        row["right"]
        for row in rows
        if row["kind"] == "within" and (row["learned"], row["tested"]) == (learned, 0)
    )
    return int(found)


def test_d8_accuracy_on_all_tasks_is_high_after_twelve_and_did_not_fall(
    rows: list[dict[str, Any]],
) -> None:
    accuracy = curve(rows).accuracy
    assert accuracy[11] >= 0.85
    assert accuracy[11] >= accuracy[2] - 0.05


def test_d9_maps_of_shapes_never_seen_get_better(rows: list[dict[str, Any]]) -> None:
    unseen = theta_errors(rows, new=True)
    assert unseen.learned.tolist() == list(range(12))
    assert unseen.every[11] <= 0.6 * unseen.every[0]


def test_d10_the_first_task_gains_from_later_ones(rows: list[dict[str, Any]]) -> None:
    assert within(rows, 11) >= within(rows, 0)
