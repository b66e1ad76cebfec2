"""Ablations of DCL: the verdicts from hand-written runs, and the ceiling of the open set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from everlearn import Canvas, Stream
from everlearn.evaluation.open_set import open_set_ceiling
from everlearn.experiments.dcl import ablations
from everlearn.experiments.framework.results_folder import ResultsFolder
from everlearn.experiments.framework.trial import PAPER, Trial
from everlearn.memory import Exemplars
from everlearn.render.affine import transform_images
from everlearn.report.experiment import ExperimentResult

pytestmark = pytest.mark.integration

TRIALS: dict[str, Trial] = {trial.name: trial for trial in ablations.SETTINGS[PAPER].trials}


def row_after(tasks: int, correct: int) -> dict[str, Any]:
    return {
        "kind": "test", "step": tasks, "learned": tasks - 1, "tested": 0, "correct": correct,
        "total": 1000,
    }  # fmt: skip


def draw(folder: Path) -> ExperimentResult:
    return ablations.figure(ResultsFolder(folder, PAPER))


def ours(result: ExperimentResult, start: str) -> str:
    return next(verdict.ours for verdict in result.verdicts if verdict.statement.startswith(start))


def test_an_ablation_is_reported_beside_its_base(write_run, tmp_path):
    write_run(TRIALS["dcl"], [row_after(200, 990)], seed=TRIALS["dcl"].seeds[0])
    write_run(
        TRIALS["dcl-image-only"], [row_after(200, 400)], seed=TRIALS["dcl-image-only"].seeds[0]
    )
    result = draw(tmp_path)
    found = ours(result, "DCL, image loss only")
    assert "0.990" in found
    assert "0.400" in found
    assert ours(result, "DCL, 4 exemplars per class") == "not measured"
    assert [row[0] for row in result.tables[0].rows] == ["DCL", "DCL, image loss only"]
    assert {verdict.verdict for verdict in result.verdicts} == {"not comparable"}


def test_the_contrastive_net_is_compared_after_as_many_tasks(write_run, tmp_path):
    write_run(
        TRIALS["contrastive"],
        [row_after(50, 40), row_after(200, 10)],
        seed=TRIALS["contrastive"].seeds[0],
    )
    write_run(TRIALS["contrastive-l1"], [row_after(50, 20)], seed=TRIALS["contrastive-l1"].seeds[0])
    found = ours(draw(tmp_path), "Contrastive net: l1 only, accuracy after 50 tasks")
    assert "0.040" in found
    assert "0.020" in found


def test_the_open_set_stands_beside_its_ceilings(write_run, write_measurement, tmp_path):
    # d1 / d2 of 1/2 and 1: every threshold below 1 calls all seen, from 1 to 2 all are told apart.
    scores = {"known": [0.5, 0.5], "unknown": [1.0, 1.0]}
    row = {"kind": "open-set", "step": 1, "learned": 199, "correct": [1, 1], **scores}
    write_run(TRIALS["dcl-128"], [row_after(200, 990), row], seed=TRIALS["dcl-128"].seeds[0])
    ceiling = {"kind": "open-set-ceiling", "size": 128, **scores}
    # The area of scores that tell nothing apart is 0.5, so that the mean over both seeds is 0.75.
    useless = {**ceiling, "unknown": ceiling["known"]}
    write_measurement(ablations.MEASUREMENT, [{**ceiling, "seed": 10}, {**useless, "seed": 11}])
    found = ours(draw(tmp_path), "Open set")
    assert "twice the size: 1.000" in found
    assert "true maps, 128 pixels: 0.750" in found


def test_the_ceiling_scores_images_by_their_true_maps():
    stream = Stream(tasks=2, classes_per_task=4, values_per_factor=2, canvas=Canvas(size=16))
    stream = stream.with_changes(split=(0.5, 0.0, 0.5))
    row = open_set_ceiling(stream, "cpu", max_images=16)
    memory = Exemplars(stream.canvas.shape)
    memory.add(range(8), stream.exemplars(range(8)).images)
    batches = [task.test.batch(slice(None)) for task in stream]
    expected = []
    for label in range(8):
        batch = batches[label // 4]
        rows = (batch.labels == label).nonzero()[:2, 0]
        found = memory.search(transform_images(batch.images[rows], batch.theta[rows]), 2)
        expected += found.novelty.tolist()
    assert row["size"] == 16
    assert row["known"] == pytest.approx(expected, abs=1e-5)
    assert len(row["unknown"]) == 16
    assert torch.tensor(row["unknown"]).mean() > torch.tensor(row["known"]).mean()
