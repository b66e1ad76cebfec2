"""Figures and verdicts from hand-written measurements."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from everlearn.experiments.beyond import million, separability, unlearning
from everlearn.experiments.dcl import fig2_shapes, fig6_choice, fig10_mistakes
from everlearn.experiments.framework.pictures import picture_row, pictures
from everlearn.experiments.framework.results_folder import ResultsFolder
from everlearn.experiments.framework.trial import PAPER
from everlearn.report.experiment import ExperimentResult, Picture

pytestmark = pytest.mark.integration

pytest.importorskip("matplotlib")

NONE = "not comparable"
PNG = b"\x89PNG\r\n\x1a\nany bytes \x00\xff"


def draw(module: ModuleType, folder: Path) -> ExperimentResult:
    return module.figure(ResultsFolder(folder, PAPER))


def test_picture_rows_return_the_same_picture():
    rows = [{"kind": "count"}, picture_row("Words.", PNG)]
    assert pictures(rows) == [Picture(PNG, "Words.")]


@pytest.mark.parametrize(("repeatable", "suffix"), [(True, ""), (False, ", NOT the same")])
def test_fig2_reports_whether_a_distant_task_is_repeatable(
    write_measurement, tmp_path, repeatable, suffix
):
    row = {"kind": "digest", "task": 1_000_000, "tables": "ab" * 32, "repeatable": repeatable}
    write_measurement("fig2-shapes", [picture_row("Shapes.", PNG), row])
    result = draw(fig2_shapes, tmp_path)
    assert result.verdicts[0].verdict == NONE
    assert result.verdicts[0].ours == f"task 1,000,001: tables abababababab{suffix}"
    assert result.pictures == [Picture(PNG, "Shapes.")]
    assert list(result.measurements) == ["fig2-shapes"]
    assert result.missing == []


def reply(choices: int, right: bool) -> dict[str, Any]:
    return {"kind": "choice", "n": choices, "answer": 1, "chosen": 1 if right else 0}


def test_fig6_reports_accuracy_with_the_most_choices(write_measurement, tmp_path):
    few = [reply(2, True)] * 3
    many = [reply(10, True)] * 3 + [reply(10, False)]
    write_measurement("fig6-random", [*many, *few])
    result = draw(fig6_choice, tmp_path)
    assert result.verdicts[1].ours == "random: 0.750"
    assert [verdict.verdict for verdict in result.verdicts] == [NONE, NONE]
    assert [verdict.measured for verdict in result.verdicts] == [False, True]  # no model was asked
    assert result.missing == [
        *("dcl-plus-seed11", "contrastive-50-seed11"),
        *("fig6-pixels", "fig6-search", "fig6-dcl-plus", "fig6-contrastive"),
    ]
    assert len(result.figures) == 1


def test_fig6_shows_models_that_were_asked_beside_the_players(write_measurement, tmp_path):
    write_measurement("fig6-random", [reply(2, False)])
    path = tmp_path / "parts" / "fig6-gpt.jsonl"
    path.write_text(json.dumps(reply(2, True)) + "\n")  # rows of `everlearn ask` name no origin
    result = draw(fig6_choice, tmp_path)
    assert result.verdicts[1].ours == "random: 0.000; gpt: 1.000"
    assert result.verdicts[0].measured
    assert "gpt" in result.figures[0].svg
    assert list(result.measurements) == ["fig6-random"]


def result_row(right: int) -> dict[str, Any]:
    return {"kind": "test", "step": 1, "learned": 0, "tested": 0, "correct": right, "total": 10}


@pytest.mark.parametrize("module", [fig6_choice, fig10_mistakes, million])
def test_runs_behind_a_measurement_are_listed(write_run, tmp_path, module):
    trials = module.SETTINGS[PAPER].trials
    for trial in trials:
        write_run(trial, [result_row(5)], seed=trial.seeds[0])
    assert [run.label for run in draw(module, tmp_path).runs] == [trial.title for trial in trials]


def test_fig10_shows_how_far_mistaken_shapes_overlap_more_than_any_two(write_measurement, tmp_path):
    rows = [
        {"kind": "count", "wrong": 3, "total": 40},
        {"kind": "overlap", "what": "mistaken", "mean": 0.2},
        {"kind": "overlap", "what": "any", "mean": 0.5},
    ]
    write_measurement("fig10-mistakes", rows)
    alike, wrong = draw(fig10_mistakes, tmp_path).verdicts
    assert alike.ours == "mistaken: 0.200, any: 0.500"
    assert alike.verdict == "undecided", "one run was measured"
    assert wrong.ours == "3 of 40 images of known shapes"


def test_million_shows_accuracy_speed_and_size(write_measurement, tmp_path):
    row = {
        "kind": "million", "factors": "grid", "classes": 1_000_000, "correct": 75, "nearest": 80,
        "total": 100, "seconds": 0.5, "memory_bytes": 4_000_000, "seconds_to_fill": 1.0,
    }  # fmt: skip
    write_measurement("million", [row])
    result = draw(million, tmp_path)
    assert result.verdicts[0].statement == "One-shot accuracy among 1,000,000 classes"
    assert result.verdicts[0].ours == "grid 0.750"
    (line,) = result.tables[0].rows
    assert line[:3] == ["grid", "1,000,000", "0.7500"]
    assert line[4:6] == ["0.8000", "200"]  # with the true map; questions a second


def test_separability_is_reported_for_the_most_classes(write_measurement, tmp_path):
    rows = [
        {
            "kind": "separability", "classes": classes, "correct": right, "images": 200,
            "alike": [alike, 0.1, 0.0],
        }
        for classes, right, alike in ((10, 200, 0.2), (5000, 190, 0.456))
    ]  # fmt: skip
    write_measurement("separability", rows)
    counts = {"kind": "equal_images", "seed": 10, "equal": 7, "other": 0, "total": 5000}
    write_measurement("equal-images", [counts])
    result = draw(separability, tmp_path)
    *ours, equal = [verdict.ours for verdict in result.verdicts]
    assert ours == ["0.46", "0.9500"]
    assert equal == "7 of 5,000, and 0 that of another class"
    assert result.missing == []
    assert "5,000 classes" in result.verdicts[0].statement
    assert [row[0] for row in result.tables[0].rows] == ["10", "5,000"]


def edit(state: str, forgotten: int, weights: str = "same") -> dict[str, Any]:
    return {
        "kind": "edit", "state": state, "seconds": 0.0125, "exemplars": 100,
        "forgotten": [forgotten, 10], "others": [80, 100], "weights": weights,
    }  # fmt: skip


@pytest.mark.parametrize("weights", ["same", "other"])
def test_unlearning_reports_whether_weights_are_unchanged(write_measurement, tmp_path, weights):
    write_measurement(
        "unlearning", [edit("before", 9), edit("deleted", 0, weights), edit("put back", 9)]
    )
    result = draw(unlearning, tmp_path)
    same = weights == "same"
    assert result.verdicts[0].ours == (
        f"accuracy on the deleted classes 0.000, weights unchanged: {same}, 12.5 ms"
    )
    shares = [row[1:3] for row in result.tables[0].rows]
    assert shares == [["0.900", "0.800"], ["0.000", "0.800"], ["0.900", "0.800"]]
    assert result.missing == [
        "unlearn-dcl-plus-seed10",
        "unlearn-joint-seed13",
        "unlearn-retrain-seed13",
    ]
