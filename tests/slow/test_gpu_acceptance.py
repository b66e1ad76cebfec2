"""The paper's protocol on a GPU, as far as 200 tasks: tests D11 to D14 of the specification."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from everlearn import Stream
from everlearn.evaluate import run
from everlearn.evaluation import Plan
from everlearn.methods import build
from everlearn.metrics import auroc, average_accuracy, paper_curve, table

pytestmark = [pytest.mark.gpu, pytest.mark.slow]
PLAN = Plan(every=1000, one_shot=(10, 100, 1000), open_set=True)


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    stream = Stream(tasks=200)
    return list(run(stream, build("dcl", stream, "cuda"), PLAN))


def one_shot(rows: list[dict[str, Any]], mode: str) -> list[float]:
    found = [r for r in rows if r["kind"] == "one-shot" and r["mode"] == mode]
    return [r["correct"] / r["total"] for r in found if r["factors"] == "grid"]


def test_d11_new_classes_are_told_apart_by_one_exemplar_each(rows: list[dict[str, Any]]) -> None:
    assert (np.array(one_shot(rows, "standard")) >= (0.97, 0.93, 0.85)).all()


def test_d12_more_classes_to_choose_from_are_not_easier(rows: list[dict[str, Any]]) -> None:
    assert (np.array(one_shot(rows, "generalised")) <= one_shot(rows, "standard")).all()


def test_d13_known_and_unknown_classes_are_told_apart(rows: list[dict[str, Any]]) -> None:
    (found,) = (row for row in rows if row["kind"] == "open-set")
    assert auroc(found["known"], found["unknown"]) >= 0.85
    curve = paper_curve(found["known"], found["unknown"])
    assert (np.diff(curve.seen) <= 0).all()
    assert (np.diff(curve.unseen) >= 0).all()


def test_d14_more_epochs_end_higher() -> None:
    stream = Stream(tasks=60)
    ends = [
        average_accuracy(
            table(run(stream, build("dcl", stream, "cuda", epochs=epochs), Plan(every=1000)))
        )
        for epochs in (1, 3, 5)
    ]
    assert ends[0] < ends[1] + 0.01
    assert ends[1] < ends[2] + 0.01
    assert ends[0] < ends[2]
