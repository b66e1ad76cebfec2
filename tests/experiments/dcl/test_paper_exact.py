"""The paper's images: the stream is that of the preset, and results stand beside the published ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from everlearn.experiments.dcl import paper_exact
from everlearn.experiments.framework import groups
from everlearn.experiments.framework.results_folder import ResultsFolder
from everlearn.experiments.framework.runner import Runner
from everlearn.experiments.framework.trial import PAPER, Trial
from everlearn.report.experiment import ExperimentResult
from everlearn.runs.presets import PRESETS

pytestmark = pytest.mark.integration

pytest.importorskip("matplotlib")

TRIALS: dict[str, Trial] = {trial.name: trial for trial in paper_exact.SETTINGS[PAPER].trials}


def rows(one_shot: int, certain: int) -> list[dict[str, Any]]:
    """One-shot accuracy in thousandths, and how many of 100 known images look certain: the area in %."""
    place = {"step": 1, "learned": 199}
    known = [0.1] * certain + [1.0] * (100 - certain)
    return [
        {"kind": "test", **place, "tested": 0, "correct": 990, "total": 1000},
        {
            "kind": "one-shot", **place, "mode": "standard", "factors": "grid", "classes": 1000,
            "correct": one_shot, "total": 1000,
        },
        {"kind": "open-set", **place, "known": known, "unknown": [0.5] * 100, "correct": [1] * 100},
    ]  # fmt: skip


def draw(folder: Path, monkeypatch: pytest.MonkeyPatch) -> ExperimentResult:
    monkeypatch.setattr(groups, "draw_lines", lambda *_, **__: "<svg/>")
    return paper_exact.figure(ResultsFolder(folder, PAPER))


@pytest.mark.parametrize(("name", "trial"), TRIALS.items())
def test_trials_learn_the_stream_of_the_preset_at_their_size(tmp_path, name, trial):
    preset = PRESETS["paper-exact"]
    stream = Runner(tmp_path, PAPER, "cpu").stream(trial, seed=10)
    canvas = replace(preset.stream.canvas, size=int(name.rpartition("-")[2]))
    assert stream == preset.stream.with_changes(seed=10, tasks=200, canvas=canvas)
    assert preset.plan == PRESETS["paper"].plan
    assert preset.settings_of(trial.method) == PRESETS["paper"].settings_of(trial.method)
    assert not trial.settings
    assert not trial.plan


def test_results_stand_beside_the_published_ones(write_run, tmp_path, monkeypatch):
    write_run(TRIALS["dcl-exact-128"], rows(960, 94), seed=10)
    result = draw(tmp_path, monkeypatch)
    (table,) = result.tables
    assert table.head == ["what", "published", "DCL, 128 pixels"]
    assert ["one shot, 1,000, standard, grid", "0.95", "0.9600"] in table.rows
    assert ["open set, area", "0.92", "0.9400"] in table.rows
    assert ["accuracy on all tasks", "–", "0.9900"] in table.rows
    verdicts = {verdict.statement: verdict for verdict in result.verdicts}
    area = verdicts["DCL, 128 pixels: area under the published curve"]
    assert (area.verdict, area.ours) == ("undecided", "0.9400 (1 seed)")
    assert verdicts["DCL+, 128 pixels: 1,000 new classes, standard"].ours == "not measured"
    runs = {name + "-seed10" for name in TRIALS} - {"dcl-exact-128-seed10"}
    assert set(result.missing) == {*runs, "paper-exact-ceiling"}


def test_true_maps_stand_in_a_column_of_their_own(
    write_run, write_measurement, tmp_path, monkeypatch
):
    write_run(TRIALS["dcl-exact-128"], rows(960, 94), seed=10)
    protocol = {"mode": "standard", "factors": "grid", "classes": 1000}
    images = {"seed": 10, "size": 128}
    ceiling = {"kind": "one-shot-ceiling", **images, **protocol, "correct": 9, "total": 10}
    area = {"kind": "open-set-ceiling", **images, "known": [0.1], "unknown": [0.9]}
    write_measurement("paper-exact-ceiling", [ceiling, area])
    (table,) = draw(tmp_path, monkeypatch).tables
    assert table.head[-1] == "true maps, 128 pixels"
    cells = {row[0]: row[-1] for row in table.rows}
    assert cells["one shot, 1,000, standard, grid"] == "0.9000"
    assert cells["open set, area"] == "1.0000"
    assert cells["accuracy on all tasks"] == "–"
