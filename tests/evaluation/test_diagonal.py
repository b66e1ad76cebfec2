"""Every task is tested right after it is learned, and the next one right before, whatever `every` is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from everlearn import Canvas, Gaussians, Plan, Stream, run
from everlearn.methods import build
from everlearn.stream import Latents, Task

STREAM = Gaussians(tasks=4, classes_per_task=4, train=8, val=5, test=6)
SPRITES = Stream(
    tasks=3, classes_per_task=3, values_per_factor=3, canvas=Canvas(size=16), split=(0.7, 0.1, 0.2)
)


class First:
    """Answers with the first of the classes allowed: those given, or all learned so far."""

    device = "cpu"
    batch_size = 1

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.asked: list[tuple[int, Any]] = []

    def learn(self, task: Task) -> Iterator[float]:
        self.seen += task.classes
        yield 0.0

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        self.asked.append((len(images), among))
        allowed = [*self.seen, -1] if among is None else among
        return torch.full((len(images),), allowed[0])

    def state(self) -> dict[str, Any]:
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        pass


def diagonal(rows: Any) -> dict[tuple[int, int], dict[str, Any]]:
    return {(row["learned"], row["tested"]): row for row in rows if row["kind"] == "diagonal"}


def test_every_task_is_tested_after_it_and_before_it_whatever_every_is() -> None:
    found = diagonal(run(STREAM, First(), Plan(every=4)))
    assert list(found) == [(0, 0), (0, 1), (1, 1), (1, 2), (2, 2), (2, 3), (3, 3)]


def test_counts_by_hand() -> None:
    found = diagonal(run(STREAM, First()))
    # 4 classes of 6 test points. After a task the first class of the stream is the answer, before it
    # the first class of the task: a quarter is correct.
    assert [found[t, t]["correct"] for t in range(4)] == [6, 0, 0, 0]
    assert [found[t, t + 1]["correct"] for t in range(3)] == [6, 6, 6]
    assert {row["total"] for row in found.values()} == {24}
    assert [(found[t, t + 1]["classes"], found[t, t + 1]["answered"]) for t in range(3)] == [
        (4, 24)
    ] * 3
    assert all("classes" not in found[t, t] and "answered" not in found[t, t] for t in range(4))


def test_only_the_next_task_has_restricted_answers() -> None:
    learner = First()
    list(run(STREAM, learner, Plan(every=4), tasks=1))
    assert learner.asked[-2:] == [(24, None), (24, STREAM[1].classes)]


def test_images_are_few_and_the_same_each_time() -> None:
    found = diagonal(run(STREAM, First(), Plan(diagonal_images=8)))
    assert {row["total"] for row in found.values()} == {8}
    assert [found[t, t + 1]["correct"] for t in range(3)] == [2, 2, 2]  # evenly over the classes


def test_it_can_be_switched_off() -> None:
    assert not diagonal(run(STREAM, First(), Plan(diagonal_images=0)))


def test_a_run_that_is_resumed_or_stops_early_has_the_same_rows() -> None:
    whole = [row for row in run(STREAM, First()) if row["kind"] == "diagonal"]
    learner = First()
    parts = [
        row
        for start, end in ((0, 2), (2, 4))
        for row in run(STREAM, learner, tasks=end, start=start, step=start)
        if row["kind"] == "diagonal"
    ]
    assert parts == whole


def test_each_task_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    original = Gaussians.__getitem__

    def count(stream: Gaussians, index: int) -> Task:
        made.append(index)
        return original(stream, index)

    monkeypatch.setattr(Gaussians, "__getitem__", count)
    list(run(STREAM, First(), Plan(every=4)))
    assert made == [0, 1, 2, 3]


def test_a_task_without_a_step_has_not_been_learned_yet() -> None:
    learner = build("joint", STREAM, "cpu", net="mlp", epochs=1, retrain_every=3)
    found = diagonal(run(STREAM, learner))
    assert list(found) == [(2, 2), (2, 3), (3, 3)]


def test_a_learner_that_needs_exemplars_answers_nothing_before_learning_a_task() -> None:
    learner = build("dcl", SPRITES, "cpu", net="convnet", batch_size=32, epochs=1)
    found = diagonal(run(SPRITES, learner, tasks=2))
    assert found[0, 1]["answered"] == found[0, 1]["correct"] == 0


def test_a_learner_that_ignores_the_classes_given_answers_nothing() -> None:
    class Ignoring(First):
        def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
            return super().predict(images)

    found = diagonal(run(STREAM, Ignoring()))
    assert [found[t, t + 1]["answered"] for t in range(3)] == [0, 0, 0]


def test_the_task_id_restricts_the_answers_right_after_learning_too() -> None:
    learner = First()
    list(run(SPRITES.with_changes(scenario="task"), learner, Plan(every=3, theta=False), tasks=1))
    assert learner.asked[-2][1] == SPRITES[0].classes


def test_validation_images_are_those_of_the_val_split_and_rows_say_so() -> None:
    plan = Plan(split="val", probe_every=1, within_task=True, all_classes_every=1)
    rows = [row for row in run(STREAM, First(), plan) if row["kind"] != "task"]
    assert {row["split"] for row in rows} == {"val"}
    kinds = {"test": 20, "within_task": 20, "diagonal": 20, "probe": 20, "all_classes": 80}
    assert {row["kind"]: row["total"] for row in rows} == kinds  # 4 classes of 5 points
    assert not any("split" in row for row in run(STREAM, First()))


def test_codes_are_evaluated_on_validation_images() -> None:
    plan = Plan(split="val", code_probe_every=100, code_train_images=10, diagonal_images=0)
    learner = build("dcl", SPRITES, "cpu", net="convnet", batch_size=32, epochs=1)
    rows = [row for row in run(SPRITES, learner, plan, tasks=1) if row["kind"] == "codes"]
    assert {(row["split"], row["total"]) for row in rows} == {("val", len(SPRITES[0].val))}


@pytest.mark.parametrize(
    "stream", [SPRITES.with_changes(split=(0.8, 0.0, 0.2)), Gaussians(val=0), Latents()]
)
def test_a_stream_without_validation_images_is_refused(stream: Any) -> None:
    with pytest.raises(ValueError, match=r"split='val' needs validation images.* has none"):
        next(run(stream, First(), Plan(split="val")))


@pytest.mark.parametrize("changes", [{"one_shot": (4,)}, {"open_set": True}])
def test_new_classes_are_not_tested_on_validation_images(changes: Any) -> None:
    with pytest.raises(ValueError, match="one_shot and open_set use test images"):
        next(run(SPRITES, First(), Plan(split="val", **changes)))
