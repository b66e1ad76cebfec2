"""The summary of one run."""

from __future__ import annotations

import json

import pytest

from everlearn.metrics import explain_missing, one_shot, share, summarise, wilson


def _counts(kind: str, learned: int, tested: int, correct: int, step: int = 0) -> dict:
    return {
        "kind": kind,
        "step": step,
        "learned": learned,
        "tested": tested,
        "correct": correct,
        "total": 100,
    }


def _task(learned: int, step: int) -> dict:
    return {
        "kind": "task",
        "learned": learned,
        "step": step,
        "images": 50,
        "seconds": 5.0,
        "evaluation_seconds": 1.0,
        "loss": 0.5,
        "bytes": {"net": 40, "memory": 2},
        "parameters": 10,
        "peak_memory": 77,
    }


def _one_shot(mode: str, correct: int, total: int = 10) -> dict:
    return {
        "kind": "one-shot",
        "step": 0,
        "learned": 1,
        "mode": mode,
        "factors": "grid",
        "classes": 5,
        "correct": correct,
        "total": total,
    }


TESTS = [_counts("test", 0, 0, 90), _counts("test", 1, 0, 60), _counts("test", 1, 1, 96)]
BEFORE = [
    *(_counts("test", -1, 0, 10), _counts("test", -1, 1, 10), _counts("test", 0, 1, 30)),
    {**_counts("diagonal", 0, 1, 30), "classes": 10, "answered": 100},
]
WITHIN = [
    *(_counts("within_task", 0, 0, 10), _counts("within_task", 1, 0, 92)),
    _counts("within_task", 1, 1, 98),
]
PROBES = [
    *(_counts("probe", 0, 0, 80, 1), _counts("probe", 1, 0, 20, 2)),
    *(_counts("probe", 1, 0, 50, 3), _counts("probe", 1, 1, 60, 3)),
]
COSTS = [_task(0, 1), _task(1, 3)]


def test_the_summary_of_a_complete_run():
    line = summarise([*TESTS, *BEFORE, *PROBES, *WITHIN], COSTS)
    low, high = wilson(156, 200)
    assert line == {
        "tasks": 2,
        "average_accuracy": pytest.approx(0.78),
        "accuracy_low": pytest.approx(float(low)),
        "accuracy_high": pytest.approx(float(high)),
        "learning_accuracy": pytest.approx(0.93),
        "forgetting": pytest.approx(0.3),
        "backward_transfer": pytest.approx(-0.3),
        "forward_transfer": pytest.approx(0.2),
        "stream_average": pytest.approx((0.9 + 0.78) / 2),
        "within_task_accuracy": pytest.approx(0.95),
        "all_classes_accuracy": None,
        "all_classes_average": None,
        "seen_classes_accuracy": None,
        "seen_classes_average": None,
        "min_accuracy": pytest.approx(0.2),
        "worst_case_accuracy": pytest.approx(0.4),
        "stability_gap": pytest.approx(0.8 - 0.2),
        "gap_regained": pytest.approx((0.5 - 0.2) / (0.8 - 0.2)),
        "gap_first_step": 1,
        "windowed_forgetting_10": pytest.approx((0.6 + 0) / 2),
        "windowed_plasticity_10": pytest.approx((0.3 + 0) / 2),
        "learning_curve_area_10": pytest.approx((0.8 + 0.6) / 2),
        "steps": 3,
        "seconds": 10.0,
        "evaluation_seconds": 2.0,
        "images_per_second": 10.0,
        "bytes": 42,
        "peak_memory": 77,
        "parameters": 10,
    }


def test_what_was_not_measured_is_none():
    line = summarise(TESTS, [])
    assert line["average_accuracy"] == pytest.approx(0.78)
    for name in (
        "forward_transfer",
        "min_accuracy",
        "stability_gap",
        "worst_case_accuracy",
        "steps",
        "bytes",
    ):
        assert line[name] is None


def test_each_missing_number_has_its_reason():
    sparse = [_counts("test", 1, 0, 60), _counts("test", 1, 1, 96)]
    reasons = explain_missing([*sparse, *PROBES])
    for name in ("learning_accuracy", "forgetting", "backward_transfer"):
        assert reasons[name].startswith("1 of 2 tasks were not tested right after")
    assert "diagonal_images" in reasons["forward_transfer"]
    assert "learning accuracy was not measured" in reasons["stability_gap"]
    assert "no task row" in reasons["seconds"]
    missing = {name for name, value in summarise([*sparse, *PROBES]).items() if value is None}
    assert reasons.keys() == missing


def test_a_gap_of_tasks_that_were_not_learned_is_missing():
    weak = [*TESTS[:2], _counts("test", 1, 1, 50)]
    assert summarise([*weak, *PROBES])["stability_gap"] is None
    reason = explain_missing([*weak, *PROBES])["stability_gap"]
    assert reason == "the tasks were not learned: learning accuracy is 0.700, below 0.9"


def test_a_run_without_rows_has_a_summary_too():
    line = summarise([], [])
    assert line.pop("tasks") == 0
    assert set(line.values()) == {None}


def test_task_rows_may_stand_among_the_others():
    assert summarise([*TESTS, *PROBES, *COSTS]) == summarise([*TESTS, *PROBES], COSTS)


def test_a_broken_row_is_not_taken_for_one_that_is_missing():
    with pytest.raises(ValueError, match="found 101 of 100"):
        summarise([_counts("test", 0, 0, 101)])
    with pytest.raises(ValueError, match="found 101 of 100"):
        summarise([*TESTS, _counts("probe", 0, 0, 101)])


def test_one_shot_rows_enter_by_their_setting_and_the_last_counts():
    rows = [_one_shot("standard", 1), _one_shot("standard", 9), _one_shot("generalised", 0, 0)]
    line = summarise(rows)
    assert line["one_shot_standard_grid_5"] == share(9, 10)
    assert line["one_shot_generalised_grid_5"] is None
    assert [setting.mode for setting in one_shot(rows)] == ["generalised", "standard"]


def test_open_set_and_theta_rows_enter_when_they_exist():
    open_set = {"kind": "open-set", "step": 0, "learned": 1, "correct": [1, 0]}
    early = {**open_set, "known": [0.9, 0.9], "unknown": [0.1]}
    late = {**open_set, "known": [0.1, 0.2], "unknown": [0.8, 0.9]}
    theta = {"kind": "theta", "learned": 1, "tested": 0, "total": 1}
    theta["squared_errors"] = [0, 0, 4, 0, 0, 4]
    line = summarise([early, late, theta])
    assert line["open_set_auroc"] == line["open_set_average_precision"] == 1
    assert line["open_set_fpr_at_95_tpr"] == 0
    assert line["open_set_oscr"] == 0.5
    assert line["open_set_paper_area"] == pytest.approx(1)
    assert line["theta_linear_rmse"] == 0
    assert line["theta_translation_rmse"] == 2
    assert line["theta_rmse"] == pytest.approx((8 / 6) ** 0.5)


def test_a_summary_is_json():
    line = summarise([*TESTS, *PROBES, _one_shot("standard", 3)], COSTS)
    assert json.loads(json.dumps(line)) == line
