"""The test on all classes of a stream, and what a learner reports about itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from everlearn import Canvas, Gaussians, Latents, Plan, Stream
from everlearn.evaluate import run
from everlearn.evaluation import check_plan
from everlearn.evaluation.all_classes import find_test_images
from everlearn.evaluation.costs import read_diagnostics
from everlearn.evaluation.test_sets import group
from everlearn.stream.scenarios.blurry import Blurry

from ..conftest import call

NC = Latents(classes=6, first=2, classes_per_task=2, dimensions=8, train=2, test=3)
NIC = NC.with_changes(scenario="nic", tasks=None)


class Recalling:
    """Knows the test points of the classes in `known`, and predicts class 0 for any others."""

    device = "cpu"
    batch_size = 1

    def __init__(self, stream: Any, known: Sequence[int]) -> None:
        self.answers: dict[bytes, int] = {}
        self.batch_sizes: list[int] = []
        for task in stream:
            batch = task.test.batch(slice(None))
            for image, label in zip(batch.images, batch.labels.tolist(), strict=True):
                if label in known:
                    self.answers[image.numpy().tobytes()] = label

    def learn(self, task: Any) -> Iterator[float]:
        yield 0.0

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        self.batch_sizes.append(len(images))
        return torch.tensor([self.answers.get(image.numpy().tobytes(), 0) for image in images])

    def state(self) -> dict[str, Any]:
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        pass


def all_classes_rows(stream: Any, known: Sequence[int], **plan: Any) -> list[dict[str, Any]]:
    rows = run(stream, Recalling(stream, known), Plan(**plan))
    return [row for row in rows if row["kind"] == "all_classes"]


@pytest.mark.parametrize("stream", [NC, NIC])
def test_all_classes_are_tested_and_those_seen_are_counted_apart(stream: Latents) -> None:
    """An oracle that goes through the tasks: 9 test points per class, known are classes 1 to 4."""
    rows = all_classes_rows(stream, range(1, 5), all_classes_every=1, max_test_tasks=1)
    seen: set[int] = set()
    assert len(rows) == len(stream)
    for row, task in zip(rows, stream, strict=True):
        seen |= set(task.classes)
        # Class 0 is predicted for whatever is unknown, so that answers for class 0 are correct.
        correct = seen & set(range(5))
        assert row == {
            "kind": "all_classes",
            "step": task.index + 1,
            "learned": task.index,
            "correct": 9 * 5,
            "total": 9 * 6,
            "seen_correct": 9 * len(correct),
            "seen_total": 9 * len(seen),
        }


@pytest.mark.parametrize(
    ("every", "learned"), [(0, []), (1, [0, 1, 2]), (2, [1, 2]), (3, [2]), (9, [2])]
)
def test_all_classes_are_tested_after_every_so_many_tasks_and_the_last(
    every: int, learned: list[int]
) -> None:
    assert [row["learned"] for row in all_classes_rows(NC, [1], all_classes_every=every)] == learned


def test_a_run_of_some_tasks_tests_the_classes_of_all() -> None:
    rows = list(run(NC, Recalling(NC, []), Plan(all_classes_every=1), tasks=1))
    [row] = [row for row in rows if row["kind"] == "all_classes"]
    assert (row["total"], row["seen_total"]) == (54, 18)


def test_a_resumed_run_counts_classes_seen_before() -> None:
    rows = run(NC, Recalling(NC, range(6)), Plan(all_classes_every=1), start=1)
    assert [row["seen_total"] for row in rows if row["kind"] == "all_classes"] == [36, 54]


def test_images_are_drawn_and_classified_in_groups() -> None:
    learner = Recalling(NC, [])
    list(run(NC, learner, Plan(all_classes_every=3, every=99, diagonal_images=0), tasks=3))
    assert learner.batch_sizes[-1] == 54
    groups = group(find_test_images(NC, "cpu"), 30)
    sizes = [[len(part.labels) for part in parts] for parts in groups]
    assert sizes == [[18, 18], [18]]


def test_a_class_counts_as_seen_when_shown_even_if_it_is_tested_later() -> None:
    stream = Stream(
        tasks=4, classes_per_task=3, values_per_factor=2, canvas=Canvas(8), scenario=Blurry(50, 30)
    )
    parts = list(find_test_images(stream, "cpu"))
    labels = torch.cat([part.labels for part in parts]).numpy()
    first_tasks = torch.cat([part.first_task for part in parts]).numpy()
    tests = np.concatenate([task.test.labels for task in stream])
    assert sorted(labels.tolist()) == sorted(tests.tolist())
    for label, first in zip(labels.tolist(), first_tasks.tolist(), strict=True):
        assert first == next(task.index for task in stream if label in task.classes)


def test_streams_without_an_end_or_test_images_are_refused() -> None:
    with pytest.raises(ValueError, match=r"all_classes_every tests all classes .* give the stream"):
        check_plan(Stream(tasks=None), Plan(all_classes_every=1))
    with pytest.raises(ValueError, match="all_classes_every need test images"):
        check_plan(Stream(split=(0.9, 0.1, 0.0)), Plan(all_classes_every=1))
    check_plan(Gaussians(), Plan(all_classes_every=1))
    with pytest.raises(ValueError, match="all_classes_every must lie in 0"):
        Plan(all_classes_every=-1)


def test_all_classes_every_is_an_option_of_run(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    options = "--preset toy --tasks 2 --epochs 1 --all-classes-every 1 --device cpu --out"
    result = call("run", "fine-tuning", *options.split(), folder)
    assert result.code == 0, result.errors
    rows = (folder / "rows.jsonl").read_text()
    assert rows.count('"kind": "all_classes"') == 2


def test_diagnostics_are_in_the_row_of_every_task() -> None:
    reported = {"norm": torch.tensor(1.5), "share": 0.25, "lost": torch.tensor(torch.nan)}
    learner: Any = Recalling(NC, [])
    learner.diagnostics = lambda: reported
    rows = run(NC, learner, Plan(every=3))
    found = [row["diagnostics"] for row in rows if row["kind"] == "task"]
    assert found == [{"norm": 1.5, "share": 0.25, "lost": None}] * 3
    assert all("diagnostics" not in row for row in run(NC, Recalling(NC, [])))
    learner.diagnostics = dict
    assert read_diagnostics(learner) == {}
