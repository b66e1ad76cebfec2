"""The test on all classes of a stream, and what a learner tells of itself."""

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
from everlearn.exam import check_exams
from everlearn.exam.costs import read_notes
from everlearn.exam.sheets import grouped
from everlearn.exam.whole import _pages
from everlearn.stream.blurry import Blurry

from .conftest import call

NC = Latents(classes=6, first=2, classes_per_task=2, dimensions=8, train=2, test=3)
NIC = NC.with_changes(scenario="nic", tasks=None)


class Recalling:
    """Knows the test points of the classes in `known`, and says class 0 of any others."""

    device, batch_size = "cpu", 1

    def __init__(self, stream: Any, known: Sequence[int]) -> None:
        self.answers: dict[bytes, int] = {}
        self.asked: list[int] = []
        for task in stream:
            batch = task.test.batch(slice(None))
            for image, label in zip(batch.images, batch.labels.tolist(), strict=True):
                if label in known:
                    self.answers[image.numpy().tobytes()] = label

    def learn(self, task: Any) -> Iterator[float]:
        yield 0.0

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        self.asked.append(len(images))
        return torch.tensor([self.answers.get(image.numpy().tobytes(), 0) for image in images])

    def state(self) -> dict[str, Any]:
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        pass


def wholes(stream: Any, known: Sequence[int], **plan: Any) -> list[dict[str, Any]]:
    rows = run(stream, Recalling(stream, known), Plan(**plan))
    return [row for row in rows if row["kind"] == "whole"]


@pytest.mark.parametrize("stream", [NC, NIC])
def test_all_classes_are_asked_and_those_met_are_told_apart(stream: Latents) -> None:
    """An oracle that goes through the tasks: 9 test points a class, known are classes 1 to 4."""
    rows, met = wholes(stream, range(1, 5), whole=1, test_tasks=1), set()
    assert len(rows) == len(stream)
    for row, task in zip(rows, stream, strict=True):
        met |= set(task.classes)
        # Whatever is unknown is called class 0, so that the answers for class 0 are right.
        right = met & set(range(5))
        assert row == {
            "kind": "whole",
            "step": task.index + 1,
            "learned": task.index,
            "right": 9 * 5,
            "total": 9 * 6,
            "met_right": 9 * len(right),
            "met_total": 9 * len(met),
        }


@pytest.mark.parametrize(
    ("every", "learned"), [(0, []), (1, [0, 1, 2]), (2, [1, 2]), (3, [2]), (9, [2])]
)
def test_it_is_asked_after_so_many_tasks_and_after_the_last(every: int, learned: list[int]) -> None:
    assert [row["learned"] for row in wholes(NC, [1], whole=every)] == learned


def test_a_run_of_some_tasks_asks_for_the_classes_of_all() -> None:
    rows = list(run(NC, Recalling(NC, []), Plan(whole=1), tasks=1))
    [row] = [row for row in rows if row["kind"] == "whole"]
    assert (row["total"], row["met_total"]) == (54, 18)


def test_a_run_that_goes_on_counts_what_was_met_before() -> None:
    going = run(NC, Recalling(NC, range(6)), Plan(whole=1), start=1)
    assert [row["met_total"] for row in going if row["kind"] == "whole"] == [36, 54]


def test_images_are_drawn_and_answered_in_groups() -> None:
    learner = Recalling(NC, [])
    exam = run(NC, learner, Plan(whole=3, every=99), tasks=3)
    list(exam)
    assert learner.asked[-1] == 54
    sizes = [[len(page.labels) for page in group] for group in grouped(_pages(NC, "cpu"), 30)]
    assert sizes == [[18, 18], [18]]


def test_a_class_that_is_tested_later_than_it_is_shown_is_asked_once_and_met_when_shown() -> None:
    stream = Stream(
        tasks=4, classes_per_task=3, values_per_factor=2, canvas=Canvas(8), scenario=Blurry(50, 30)
    )
    pages = list(_pages(stream, "cpu"))
    labels = torch.cat([page.labels for page in pages]).numpy()
    since = torch.cat([page.since for page in pages]).numpy()
    tests = np.concatenate([task.test.labels for task in stream])
    assert sorted(labels.tolist()) == sorted(tests.tolist())
    for label, first in zip(labels.tolist(), since.tolist(), strict=True):
        assert first == next(task.index for task in stream if label in task.classes)


def test_streams_without_an_end_or_test_images_are_refused() -> None:
    with pytest.raises(ValueError, match=r"whole tests all classes .* give the stream an end"):
        check_exams(Stream(tasks=None), Plan(whole=1))
    with pytest.raises(ValueError, match=r"exams \(whole\) need test images"):
        check_exams(Stream(split=(0.9, 0.1, 0.0)), Plan(whole=1))
    check_exams(Gaussians(), Plan(whole=1))
    with pytest.raises(ValueError, match="whole must lie in 0"):
        Plan(whole=-1)


def test_whole_is_an_option_of_run(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    options = "--preset toy --tasks 2 --epochs 1 --whole 1 --device cpu --out"
    told = call("run", "fine-tuning", *options.split(), folder)
    assert told.code == 0, told.errors
    rows = (folder / "rows.jsonl").read_text()
    assert rows.count('"kind": "whole"') == 2


def test_notes_are_in_the_row_of_every_task() -> None:
    told = {"norm": torch.tensor(1.5), "share": 0.25, "lost": torch.tensor(torch.nan)}
    learner: Any = Recalling(NC, [])
    learner.notes = lambda: told
    rows = run(NC, learner, Plan(every=3))
    notes = [row["notes"] for row in rows if row["kind"] == "task"]
    assert notes == [{"norm": 1.5, "share": 0.25, "lost": None}] * 3
    assert all("notes" not in row for row in run(NC, Recalling(NC, [])))
    assert read_notes({}, "cpu") == {}
