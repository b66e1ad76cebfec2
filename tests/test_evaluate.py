"""The loop: which pairs are tested when, what probes leave behind, and how a run that fails stops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from mmap import PAGESIZE, mmap
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from everlearn import Canvas, Stream
from everlearn.evaluate import run
from everlearn.exam import Exam, Plan, first_unmet, mark
from everlearn.exam.costs import (
    DivergedError,
    check_losses,
    check_weights,
    count_bytes,
    count_memory,
    forget_peak,
)
from everlearn.exam.one_shot import FACTORS, class_by_class, new_classes
from everlearn.exam.sheets import Sheets
from everlearn.methods import build
from everlearn.metrics import (
    average_accuracy,
    backward_transfer,
    ends_of_tasks,
    min_accuracy,
    probes,
    table,
)
from everlearn.stream.task import Split, Task

STREAM = Stream(
    tasks=4, classes_per_task=3, values_per_factor=3, canvas=Canvas(size=16), split=(0.7, 0.1, 0.2)
)
SMALL = {
    "dcl": {"net": "convnet", "batch_size": 32, "epochs": 1},
    "dcl-plus": {"net": "convnet", "batch_size": 32, "epochs": 1},
    "fine-tuning": {"net": "convnet-pooled", "batch_size": 32, "epochs": 1},
    "joint": {"net": "convnet-pooled", "batch_size": 32, "epochs": 1},
}


class Knowing:
    """Names the true class, from the brightness of a pixel that tells it; learns nothing."""

    device, batch_size = "cpu", 1

    def __init__(self, known: int) -> None:
        self.known = known

    def learn(self, task: Task) -> Iterator[float]:
        yield 0.5

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        label = images.flatten(1)[:, 0].round().long()
        return torch.where(label < self.known, label, -1)

    def state(self) -> dict[str, Any]:
        return {"net": {}, "notes": torch.zeros(5)}

    def load_state(self, state: dict[str, Any]) -> None:
        pass


class Vectors:
    """Images made of given numbers."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = torch.from_numpy(values.astype(np.float32))

    def drawer(self, device: str) -> Any:
        return lambda rows: self.values[rows]


def vector_task(index: int, classes: range, train: Any, test: Any) -> Task:
    def split(values: np.ndarray, labels: np.ndarray) -> Split:
        return Split(labels.astype(np.int64), Vectors(values[:, None, None, :]))

    parts = {"train": split(*train), "val": split(*test), "test": split(*test)}
    ids = np.array(classes)
    return Task(index, tuple(classes), **parts, canonical=split(ids[:, None], ids), seed=0)


class Told:
    """Images that show their own label."""

    tasks, canvas = 5, Canvas(size=4)

    def __getitem__(self, index: int) -> Task:
        labels = np.repeat(np.arange(2 * index, 2 * index + 2), 3)
        return vector_task(
            index,
            range(2 * index, 2 * index + 2),
            (labels[:, None], labels),
            (labels[:, None], labels),
        )


def pairs(rows: list[dict[str, Any]], kind: str = "test") -> list[tuple[int, int]]:
    return [(row["learned"], row["tested"]) for row in rows if row["kind"] == kind]


def test_every_task_met_is_tested_after_every_task() -> None:
    rows = list(run(Told(), Knowing(100)))
    assert pairs(rows) == [(t, i) for t in range(5) for i in range(t + 1)]
    assert all(row["right"] == row["total"] == 6 for row in rows if row["kind"] == "test")


def test_counts_are_of_the_task_they_name() -> None:
    rows = list(run(Told(), Knowing(5)))
    right = {row["tested"]: row["right"] for row in rows if row["kind"] == "test"}
    assert right == {0: 6, 1: 6, 2: 3, 3: 0, 4: 0}


def test_a_cadence_tests_at_its_tasks_and_at_the_end() -> None:
    rows = list(run(Told(), Knowing(100), Plan(every=2)))
    assert sorted({learned for learned, _ in pairs(rows)}) == [1, 3, 4]


def test_tasks_ahead_are_tested_too_and_before_learning() -> None:
    rows = list(run(Told(), Knowing(100), Plan(ahead=2)))
    assert (-1, 0) in pairs(rows)
    assert (-1, 1) in pairs(rows)
    assert (-1, 2) not in pairs(rows)
    assert {i for t, i in pairs(rows) if t == 1} == {0, 1, 2, 3}
    assert {i for t, i in pairs(rows) if t == 4} == {0, 1, 2, 3, 4}


def test_a_bounded_test_spreads_over_the_tasks_met_with_both_ends() -> None:
    rows = list(run(Told(), Knowing(100), Plan(test_tasks=3)))
    assert [i for t, i in pairs(rows) if t == 4] == [0, 2, 4]
    assert [i for t, i in pairs(rows) if t == 1] == [0, 1]


def test_a_bounded_test_asks_the_same_images_each_time() -> None:
    sheets = Sheets(STREAM, 4, "cpu")
    assert torch.equal(sheets.sheet(1).images(), Sheets(STREAM, 4, "cpu").sheet(1).images())
    assert len(sheets.sheet(1).labels) == 4
    assert len(set(sheets.sheet(1).labels.tolist())) == 3


def test_a_run_may_stop_early_or_start_later() -> None:
    whole = list(run(Told(), Knowing(100)))
    part = list(run(Told(), Knowing(100), tasks=2)) + list(
        run(Told(), Knowing(100), start=2, step=2)
    )
    assert pairs(whole) == pairs(part)
    assert [r["step"] for r in whole] == [r["step"] for r in part]


def test_a_learned_task_is_one_row_with_its_costs_after_its_tests() -> None:
    rows = list(run(Told(), Knowing(100)))
    assert [row["learned"] for row in rows if row["kind"] == "task"] == [0, 1, 2, 3, 4]
    assert rows[-1]["kind"] == "task"
    assert rows[-1]["bytes"] == {"net": 0, "notes": 20}
    assert rows[-1]["step"] == 5
    assert rows[-1]["loss"] == 0.5


def test_probes_come_before_the_first_step_and_every_so_many() -> None:
    learner = build("dcl", STREAM, "cpu", **SMALL["dcl"])
    rows = list(run(STREAM, learner, Plan(probe=2, probe_images=3), tasks=2))
    steps = sorted({row["step"] for row in rows if row["kind"] == "probe"})
    last = max(row["step"] for row in rows if row["kind"] == "task")
    assert steps == [0, *range(2, last + 1, 2)]
    assert {row["total"] for row in rows if row["kind"] == "probe"} == {3}
    assert all(row["tested"] <= max(0, row["learned"]) for row in rows if row["kind"] == "probe")


@pytest.mark.parametrize("name", SMALL)
def test_s19_a_probe_leaves_the_learner_as_it_was(name: str) -> None:
    learner: Any = build(name, STREAM, "cpu", **SMALL[name])
    exam = Exam(STREAM, learner, Plan(within=True, open_set=True, one_shot=(4,)), 4)
    lesson = learner.learn(STREAM[0])
    next(lesson)
    net = learner.student.net if hasattr(learner, "student") else learner.net

    def everything() -> list[Tensor]:
        return [t.clone() for t in (*net.state_dict().values(), torch.random.get_rng_state())]

    before, training = everything(), net.training
    list(exam.probe(1, 0))
    list(exam.after(1, STREAM[0], 0))
    assert all(torch.equal(a, b) for a, b in zip(before, everything(), strict=True))
    assert net.training == training
    assert training


@pytest.mark.parametrize("name", SMALL)
def test_probing_changes_no_later_row(name: str) -> None:
    def tests_of(plan: Plan) -> list[Any]:
        rows = run(STREAM, build(name, STREAM, "cpu", **SMALL[name]), plan, tasks=2)
        return [row for row in rows if row["kind"] == "test"]

    assert tests_of(Plan()) == tests_of(Plan(probe=3, within=True))


def test_within_its_own_classes_a_task_to_come_can_be_tested() -> None:
    learner = build("dcl", STREAM, "cpu", **SMALL["dcl"])
    rows = list(run(STREAM, learner, Plan(within=True, ahead=1), tasks=2))
    ahead = [row for row in rows if row["kind"] == "within" and row["tested"] > row["learned"]]
    assert ahead
    assert any(row["right"] > 0 for row in ahead)
    assert all(
        row["right"] == 0
        for row in rows
        if row["kind"] == "test" and row["tested"] > row["learned"]
    )


def test_errors_of_maps_are_measured_on_the_first_the_last_and_a_new_task() -> None:
    learner = build("dcl", STREAM, "cpu", **SMALL["dcl"])
    rows = list(run(STREAM, learner, Plan(), tasks=3))
    assert [i for t, i in pairs(rows, "theta") if t == 2] == [0, 2, 4]
    squares = [row["squares"] for row in rows if row["kind"] == "theta"][-1]
    assert len(squares) == 6
    assert min(squares) > 0


def test_finals_come_at_the_end_and_where_asked() -> None:
    learner = build("dcl", STREAM, "cpu", **SMALL["dcl"])
    rows = list(run(STREAM, learner, Plan(one_shot=(4,), open_set=True, finals=(2,)), tasks=3))
    ones = [row for row in rows if row["kind"] == "one-shot"]
    assert [row["learned"] for row in ones] == [1] * 4 + [2] * 4
    assert {(row["mode"], row["factors"]) for row in ones} == {
        (m, f) for m in ("standard", "generalised") for f in ("grid", "continuous")
    }
    assert len([row for row in rows if row["kind"] == "open-set"]) == 2


def test_a_loss_that_is_no_number_stops_the_run_and_says_where() -> None:
    class Diverging(Knowing):
        def learn(self, task: Task) -> Iterator[float]:
            yield 1.0
            yield float("nan") if task.index == 2 else 1.0

    rows: list[dict[str, Any]] = []
    with pytest.raises(DivergedError, match=r"became nan at step 6, the 2\. of task 2"):
        rows.extend(row for row in run(Told(), Diverging(100)))
    with pytest.raises(DivergedError, match="became inf at step 1"):
        check_losses([float("inf")], 0, 1)
    assert check_losses([1.0, torch.tensor(2.0)], 0, 2) == 1.5
    assert check_losses([], 0, 0) is None


def test_bytes_count_all_tensors_of_a_state() -> None:
    state = {
        "a": torch.zeros(3),
        "b": [torch.zeros(2, dtype=torch.uint8), {"c": torch.zeros(1)}],
        "d": 7,
    }
    assert count_bytes(state) == 12 + 2 + 4


@pytest.mark.parametrize(
    "changes",
    [{"every": 0}, {"ahead": -1}, {"probe_images": 0}, {"test_tasks": 0}, {"one_shot": (1,)}],
)
def test_a_bad_plan_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(changes))):
        Plan(**changes)


def test_marks_in_groups_are_those_one_by_one() -> None:
    learner = build("dcl", STREAM, "cpu", **SMALL["dcl"])
    for task in STREAM:
        for _ in learner.learn(task):
            pass
    sheets = Sheets(STREAM, None, "cpu")
    together = mark(learner, sheets.groups(range(4)))
    for one in together:
        batch = STREAM[one.task].test.batch(slice(None))
        assert one.right == int((learner.predict(batch.images) == batch.labels).sum())
        assert one.total == len(batch.labels)


@pytest.mark.slow
def test_where_the_stream_tells_the_task_answers_are_of_its_classes() -> None:
    told = STREAM.with_changes(scenario="task")
    for name in SMALL:
        learner = build(name, told, "cpu", **SMALL[name])
        rows = list(run(told, learner, Plan(within=True, probe=4, probe_images=1000)))
        marks = {
            kind: {(r["learned"], r["tested"]): r["right"] for r in rows if r["kind"] == kind}
            for kind in ("test", "within")
        }
        assert marks["test"] == marks["within"]
        plain = list(run(STREAM, build(name, STREAM, "cpu", **SMALL[name])))
        assert sum(marks["test"].values()) > sum(r["right"] for r in plain if r["kind"] == "test")


def test_a_class_that_was_never_met_is_no_answer_where_the_task_is_told() -> None:
    told = STREAM.with_changes(scenario="task")
    rows = list(run(told, build("dcl", told, "cpu", **SMALL["dcl"]), Plan(ahead=1), tasks=1))
    assert [row["right"] for row in rows if row["kind"] == "test" and row["learned"] < 0] == [0]


def test_a_task_without_test_images_has_no_row_and_stops_nothing() -> None:
    stream = Stream(
        tasks=5, classes_per_task=2, values_per_factor=3, canvas=Canvas(size=16),
        scenario="blurry", seed=1,
    )  # fmt: skip
    empty = [task.index for task in stream if not len(task.test)]
    assert empty == [0]
    learner = build("dcl", stream, "cpu", **SMALL["dcl"])
    rows = list(run(stream, learner, Plan(within=True, probe=1)))
    for kind in ("test", "within", "probe", "theta"):
        assert not any(tested in empty for _, tested in pairs(rows, kind))
    assert [row["learned"] for row in rows if row["kind"] == "task"] == list(range(5))


@pytest.mark.parametrize("tasks", [-1, 5])
def test_more_tasks_than_there_are_are_refused_before_learning(tasks: int) -> None:
    with pytest.raises(ValueError, match=f"tasks must lie in 0 .. 4 .*, found {tasks}"):
        next(run(STREAM, Knowing(0), tasks=tasks))


def test_an_endless_stream_is_learned_as_far_as_asked() -> None:
    stream = STREAM.with_changes(tasks=None)
    learner = build("dcl", stream, "cpu", **SMALL["dcl"])
    rows = list(run(stream, learner, Plan(one_shot=(4,), open_set=True), tasks=2))
    assert [tested for _, tested in pairs(rows, "theta")] == [0, 2, 0, 1, 2]
    assert {row["kind"] for row in rows[-6:]} == {"one-shot", "open-set", "task"}


@pytest.mark.parametrize("scenario", ["class", "domain", "nic", "blurry", "recurring"])
def test_the_task_that_is_never_learned_holds_none_of_the_stream_s_classes(scenario: str) -> None:
    stream = STREAM.with_changes(scenario=scenario)
    unmet = class_by_class(stream)[first_unmet(stream, 4)]
    assert not set(unmet.classes) & set(stream.class_ids)
    assert unmet.index >= 4


@pytest.mark.parametrize("name", SMALL)
def test_images_are_counted_where_a_task_has_fewer_than_a_batch(name: str) -> None:
    stream = STREAM.with_changes(tasks=2)
    learner = build(name, stream, "cpu", **(SMALL[name] | {"batch_size": 10_000, "epochs": 2}))
    counts = [row["images"] for row in run(stream, learner) if row["kind"] == "task"]
    a_task = 2 * len(stream[0].train)
    assert counts == ([a_task, 2 * a_task] if name == "joint" else [a_task, a_task])


def test_one_shot_on_the_grid_is_so_whatever_the_stream_tests_on() -> None:
    stream = STREAM.with_changes(test_factors="continuous")
    learner = build("dcl", stream, "cpu", **SMALL["dcl"])
    tables = {factors: new_classes(stream, learner, factors)[0].test.factors for factors in FACTORS}
    assert len(np.unique(tables["grid"].x)) <= 3
    assert len(np.unique(tables["continuous"].x)) > 3
    own = new_classes(stream, learner)[0].test.factors
    assert (own.x == tables["continuous"].x).all()


@pytest.mark.parametrize("plan", [Plan(one_shot=(4,)), Plan(open_set=True)])
def test_new_classes_need_shapes_and_test_images(plan: Plan) -> None:
    with pytest.raises(ValueError, match="only a stream of sprites"):
        next(run(Told(), Knowing(100), plan))
    with pytest.raises(ValueError, match="need test images"):
        next(run(STREAM.with_changes(split=(0.9, 0.1, 0.0)), Knowing(100), plan))


@pytest.mark.parametrize("wrong", [torch.nan, torch.inf])
def test_weights_that_are_no_numbers_are_refused(wrong: float) -> None:
    state = {"net": {"weight": torch.tensor([1.0])}, "optimizer": [torch.tensor([0.0, 2.0])]}
    check_weights(state, 7)
    state["optimizer"][0][1] = wrong
    with pytest.raises(DivergedError, match=r"the learner's optimizer became .* in task 7"):
        check_weights(state, 7)


def test_peak_memory_is_counted_anew_for_every_run() -> None:
    # Mapped, and so given back for sure: an array may lie in what earlier tests have freed, and stay.
    with mmap(-1, 160_000_000) as held:
        for page in range(0, len(held), PAGESIZE):
            held[page] = 1
        before = count_memory("cpu")["peak_memory"]
    forget_peak("cpu")
    assert count_memory("cpu")["peak_memory"] < before - 100_000_000


class Gaussians:
    """5 tasks of 4 Gaussian classes in 32 dimensions, as section 8 of the metrics specification."""

    tasks, canvas = 5, Canvas(size=32)

    def __init__(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.means = random.normal(size=(20, 32)) * 0.9
        self.random = random.integers(2**31, size=5)

    def __getitem__(self, index: int) -> Task:
        random = np.random.default_rng(self.random[index])
        classes = range(4 * index, 4 * index + 4)

        def draw(each: int) -> tuple[np.ndarray, np.ndarray]:
            labels = np.repeat(np.array(classes), each)
            return self.means[labels] + random.normal(size=(len(labels), 32)), labels

        return vector_task(index, classes, draw(200), draw(50))


class Rehearsing:
    """Experience replay with a reservoir; naive without room in it. SGD 0.05, momentum 0.9."""

    device, batch_size = "cpu", 32

    def __init__(self, room: int) -> None:
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 20))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.05, momentum=0.9)
        self.random, self.room, self.met = np.random.default_rng(0), room, 0
        self.kept: list[tuple[Tensor, Tensor]] = []

    def learn(self, task: Task) -> Iterator[float]:
        old = list(self.kept)
        for batch in task.batches(32, epochs=5):
            images, labels = batch.images, batch.labels
            if old:
                chosen = [old[i] for i in self.random.integers(len(old), size=32)]
                images = torch.cat((images, torch.stack([x for x, _ in chosen])))
                labels = torch.cat((labels, torch.stack([y for _, y in chosen])))
            loss = cross_entropy(self.net(images), labels)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            yield loss.detach()
        self._keep(task)

    def _keep(self, task: Task) -> None:
        batch = task.train.batch(slice(None))
        for pair in zip(batch.images, batch.labels, strict=True):
            self.met += 1
            if len(self.kept) < self.room:
                self.kept.append(pair)
            elif self.room and (place := int(self.random.integers(self.met))) < self.room:
                self.kept[place] = pair

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        with torch.no_grad():
            return self.net(images).argmax(1)

    def state(self) -> dict[str, Any]:
        return {"net": self.net.state_dict()}

    def load_state(self, state: dict[str, Any]) -> None:
        self.net.load_state_dict(state["net"])


def test_s20_probes_show_the_stability_gap_of_replay_and_the_forgetting_of_none() -> None:
    plan = Plan(probe=1, probe_images=100)
    rows = list(run(Gaussians(0), Rehearsing(200), plan))
    old = [
        row for row in rows if row["kind"] == "test" and row["learned"] == 4 and row["tested"] < 4
    ]
    end = sum(row["right"] for row in old) / sum(row["total"] for row in old)
    lowest = min_accuracy(probes(rows), ends_of_tasks(rows))
    assert end - lowest >= 0.2
    naive = table(run(Gaussians(0), Rehearsing(0), replace(plan, probe=0)))
    assert 0.2 <= average_accuracy(naive) <= 0.3
    assert backward_transfer(naive) < -0.8
