"""Verdicts of experiments that follow from measurements: rows by hand, and what must be said of them."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from everlearn.experiments import (
    fig2_shapes,
    fig6_choice,
    fig10_mistakes,
    million,
    separability,
    unlearning,
)
from everlearn.experiments.found import Found
from everlearn.experiments.pictures import picture_row, pictures
from everlearn.experiments.trial import PAPER
from everlearn.report.chapter import Chapter, Picture

pytest.importorskip("matplotlib")

NONE = "not comparable"
PNG = b"\x89PNG\r\n\x1a\nany bytes \x00\xff"


def draw(module: ModuleType, folder: Path) -> Chapter:
    return module.figure(Found(folder, PAPER))


def test_pictures_come_back_as_they_were_kept():
    rows = [{"kind": "count"}, picture_row("Words.", PNG)]
    assert pictures(rows) == [Picture(PNG, "Words.")]


@pytest.mark.parametrize(("again", "more"), [(True, ""), (False, ", NOT the same")])
def test_fig2_says_whether_a_task_drawn_again_is_the_same(keep_part, tmp_path, again, more):
    row = {"kind": "digest", "task": 1_000_000, "tables": "ab" * 32, "again": again}
    keep_part("fig2-shapes", [picture_row("Shapes.", PNG), row])
    chapter = draw(fig2_shapes, tmp_path)
    assert chapter.verdicts[0].verdict == NONE
    assert chapter.verdicts[0].ours == f"task 1,000,000: tables abababababab{more}"
    assert chapter.pictures == [Picture(PNG, "Shapes.")]
    assert list(chapter.parts) == ["fig2-shapes"]
    assert chapter.missing == []


def reply(choices: int, right: bool) -> dict[str, Any]:
    return {"kind": "choice", "n": choices, "answer": 1, "chosen": 1 if right else 0}


def test_fig6_counts_right_answers_among_the_most_choices(keep_part, tmp_path):
    few, many = [reply(2, True)] * 3, [reply(10, True)] * 3 + [reply(10, False)]
    keep_part("fig6-random", [*many, *few])
    chapter = draw(fig6_choice, tmp_path)
    assert chapter.verdicts[1].ours == "random: 0.750"
    assert [verdict.verdict for verdict in chapter.verdicts] == [NONE, NONE]
    assert chapter.missing == [
        *("dcl-plus-seed0", "contrastive-50-seed0"),
        *("fig6-pixels", "fig6-search", "fig6-dcl-plus", "fig6-contrastive"),
    ]
    assert len(chapter.figures) == 1


def test_fig6_a_model_that_was_asked_joins_the_players(keep_part, tmp_path):
    keep_part("fig6-random", [reply(2, False)])
    path = tmp_path / "parts" / "fig6-gpt.jsonl"
    path.write_text(json.dumps(reply(2, True)) + "\n")  # rows of `everlearn ask` name no origin
    chapter = draw(fig6_choice, tmp_path)
    assert chapter.verdicts[1].ours == "random: 0.000; gpt: 1.000"
    assert "gpt" in chapter.figures[0].svg
    assert list(chapter.parts) == ["fig6-random"]


def exam(right: int) -> dict[str, Any]:
    return {"kind": "test", "step": 1, "learned": 0, "tested": 0, "right": right, "total": 10}


@pytest.mark.parametrize("module", [fig6_choice, fig10_mistakes, million])
def test_the_runs_that_a_measurement_was_made_with_are_listed(keep, tmp_path, module):
    trials = module.SETTINGS[PAPER].trials
    for trial in trials:
        keep(trial, [exam(5)])
    assert [run.label for run in draw(module, tmp_path).runs] == [trial.title for trial in trials]


@pytest.mark.parametrize(("mistaken", "word"), [(0.2, "equal"), (0.6, "worse")])
def test_fig10_mistaken_shapes_must_be_nearer_than_any_two(keep_part, tmp_path, mistaken, word):
    rows = [
        {"kind": "count", "wrong": 3, "total": 40},
        {"kind": "likeness", "what": "mistaken", "mean": mistaken},
        {"kind": "likeness", "what": "any", "mean": 0.5},
    ]
    keep_part("fig10-mistakes", rows)
    alike, wrong = draw(fig10_mistakes, tmp_path).verdicts
    assert alike.verdict == word
    assert wrong.ours == "3 of 40 images of known shapes"


def test_million_shows_accuracy_speed_and_size(keep_part, tmp_path):
    row = {
        "kind": "million", "factors": "grid", "classes": 1_000_000, "right": 75, "nearest": 80,
        "total": 100, "seconds": 0.5, "memory_bytes": 4_000_000, "seconds_to_fill": 1.0,
    }  # fmt: skip
    keep_part("million", [row])
    chapter = draw(million, tmp_path)
    assert chapter.verdicts[0].statement == "One shot among 1,000,000 classes"
    assert chapter.verdicts[0].ours == "grid 0.750"
    (line,) = chapter.tables[0].rows
    assert line[:3] == ["grid", "1,000,000", "0.7500"]
    assert line[4:6] == ["0.8000", "200"]  # with the true map; questions a second


def test_separability_is_told_of_the_most_classes(keep_part, tmp_path):
    rows = [
        {
            "kind": "separability", "classes": classes, "right": right, "images": 200,
            "alike": [alike, 0.1, 0.0],
        }
        for classes, right, alike in ((10, 200, 0.2), (5000, 190, 0.456))
    ]  # fmt: skip
    keep_part("separability", rows)
    chapter = draw(separability, tmp_path)
    assert [verdict.ours for verdict in chapter.verdicts] == ["0.46", "0.9500"]
    assert "5,000 classes" in chapter.verdicts[0].statement
    assert [row[0] for row in chapter.tables[0].rows] == ["10", "5,000"]


def edit(state: str, forgotten: int, weights: str = "same") -> dict[str, Any]:
    return {
        "kind": "edit", "state": state, "seconds": 0.0125, "exemplars": 100,
        "forgotten": [forgotten, 10], "others": [80, 100], "weights": weights,
    }  # fmt: skip


@pytest.mark.parametrize("weights", ["same", "other"])
def test_unlearning_says_whether_weights_stayed_the_same(keep_part, tmp_path, weights):
    keep_part("unlearning", [edit("before", 9), edit("deleted", 0, weights), edit("put back", 9)])
    chapter = draw(unlearning, tmp_path)
    same = weights == "same"
    assert chapter.verdicts[0].ours == (
        f"accuracy on the forgotten 0.000, weights the same: {same}, 12.5 ms"
    )
    shares = [row[1:3] for row in chapter.tables[0].rows]
    assert shares == [["0.900", "0.800"], ["0.000", "0.800"], ["0.900", "0.800"]]
    assert chapter.missing == [
        "unlearn-dcl-plus-seed0",
        "unlearn-joint-seed0",
        "unlearn-retrain-seed0",
    ]
