"""The main loop: which tasks are tested when, that probes change nothing, and how a failing run stops."""

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
from everlearn.evaluation import Evaluator, Plan, read_plan, score
from everlearn.evaluation import test_sets as sets
from everlearn.evaluation.costs import (
    DivergedError,
    check_losses,
    check_weights,
    count_bytes,
    measure_memory,
    reset_peak_memory,
)
from everlearn.evaluation.evaluator import first_unseen_task
from everlearn.evaluation.one_shot import FACTORS, class_by_class, new_classes
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

pytestmark = pytest.mark.integration

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
    """Predicts the true class, which the first pixel shows, if it is below `known`; learns nothing."""

    device = "cpu"
    batch_size = 1

    def __init__(self, known: int) -> None:
        self.known = known

    def learn(self, task: Task) -> Iterator[float]:
        yield 0.5

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        label = images.flatten(1)[:, 0].round().long()
        return torch.where(label < self.known, label, -1)

    def state(self) -> dict[str, Any]:
        return {"net": {}, "extra": torch.zeros(5)}

    def load_state(self, state: dict[str, Any]) -> None:
        pass


class Vectors:
    """Images made of given numbers."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = torch.from_numpy(values.astype(np.float32))

    def loader(self, device: str) -> Any:
        return lambda rows: self.values[rows]


def vector_task(index: int, classes: range, train: Any, test: Any) -> Task:
    def split(values: np.ndarray, labels: np.ndarray) -> Split:
        return Split(labels.astype(np.int64), Vectors(values[:, None, None, :]))

    parts = {"train": split(*train), "val": split(*test), "test": split(*test)}
    ids = np.array(classes)
    return Task(index, tuple(classes), **parts, canonical=split(ids[:, None], ids), seed=0)


class LabelStream:
    """Tasks with images that show their label."""

    tasks = 5
    canvas = Canvas(size=4)

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


def test_every_task_seen_is_tested_after_every_task() -> None:
    rows = list(run(LabelStream(), Knowing(100)))
    assert pairs(rows) == [(t, i) for t in range(5) for i in range(t + 1)]
    assert all(row["correct"] == row["total"] == 6 for row in rows if row["kind"] == "test")


def test_counts_are_of_the_task_they_name() -> None:
    rows = list(run(LabelStream(), Knowing(5)))
    correct = {row["tested"]: row["correct"] for row in rows if row["kind"] == "test"}
    assert correct == {0: 6, 1: 6, 2: 3, 3: 0, 4: 0}


def test_tests_come_after_every_so_many_tasks_and_at_the_end() -> None:
    rows = list(run(LabelStream(), Knowing(100), Plan(every=2)))
    assert sorted({learned for learned, _ in pairs(rows)}) == [1, 3, 4]


def test_future_tasks_are_tested_too_and_before_learning() -> None:
    rows = list(run(LabelStream(), Knowing(100), Plan(future_tasks=2)))
    assert (-1, 0) in pairs(rows)
    assert (-1, 1) in pairs(rows)
    assert (-1, 2) not in pairs(rows)
    assert {i for t, i in pairs(rows) if t == 1} == {0, 1, 2, 3}
    assert {i for t, i in pairs(rows) if t == 4} == {0, 1, 2, 3, 4}


def test_a_limited_test_spreads_over_the_tasks_seen_with_both_ends() -> None:
    rows = list(run(LabelStream(), Knowing(100), Plan(max_test_tasks=3)))
    assert [i for t, i in pairs(rows) if t == 4] == [0, 2, 4]
    assert [i for t, i in pairs(rows) if t == 1] == [0, 1]


def test_a_limited_test_uses_the_same_images_each_time() -> None:
    first = sets.TestSets(STREAM, 4, "cpu").get(1)
    second = sets.TestSets(STREAM, 4, "cpu").get(1)
    assert torch.equal(first.images(), second.images())
    assert len(first.labels) == 4
    assert len(set(first.labels.tolist())) == 3


def test_a_run_may_stop_early_or_start_later() -> None:
    complete = list(run(LabelStream(), Knowing(100)))
    parts = list(run(LabelStream(), Knowing(100), tasks=2)) + list(
        run(LabelStream(), Knowing(100), start=2, step=2)
    )
    assert pairs(complete) == pairs(parts)
    assert [row["step"] for row in complete] == [row["step"] for row in parts]


def test_the_costs_of_a_task_are_one_row_after_its_tests() -> None:
    rows = list(run(LabelStream(), Knowing(100)))
    assert [row["learned"] for row in rows if row["kind"] == "task"] == [0, 1, 2, 3, 4]
    assert rows[-1]["kind"] == "task"
    assert rows[-1]["bytes"] == {"net": 0, "extra": 20}
    assert rows[-1]["step"] == 5
    assert rows[-1]["loss"] == 0.5


def test_probes_come_before_the_first_step_and_after_every_so_many() -> None:
    learner = build("dcl", STREAM, "cpu", **SMALL["dcl"])
    rows = list(run(STREAM, learner, Plan(probe_every=2, probe_images=3), tasks=2))
    steps = sorted({row["step"] for row in rows if row["kind"] == "probe"})
    last = max(row["step"] for row in rows if row["kind"] == "task")
    assert steps == [0, *range(2, last + 1, 2)]
    assert {row["total"] for row in rows if row["kind"] == "probe"} == {3}
    assert all(row["tested"] <= max(0, row["learned"]) for row in rows if row["kind"] == "probe")


@pytest.mark.parametrize("name", SMALL)
def test_evaluation_leaves_the_learner_unchanged(name: str) -> None:
    learner: Any = build(name, STREAM, "cpu", **SMALL[name])
    evaluator = Evaluator(STREAM, learner, Plan(within_task=True, open_set=True, one_shot=(4,)), 4)
    next(iter(learner.learn(STREAM[0])))
    net = learner.trainer.net if hasattr(learner, "trainer") else learner.net

    def everything() -> list[Tensor]:
        return [t.clone() for t in (*net.state_dict().values(), torch.random.get_rng_state())]

    before = everything()
    training = net.training
    list(evaluator._probe(1, 0))
    list(evaluator.after(1, STREAM[0], 0))
    assert all(torch.equal(a, b) for a, b in zip(before, everything(), strict=True))
    assert net.training == training
    assert training


@pytest.mark.parametrize("name", SMALL)
def test_probing_changes_no_later_row(name: str) -> None:
    def tests_of(plan: Plan) -> list[Any]:
        rows = run(STREAM, build(name, STREAM, "cpu", **SMALL[name]), plan, tasks=2)
        return [row for row in rows if row["kind"] == "test"]

    fewest = tests_of(Plan(diagonal_images=0))
    assert fewest == tests_of(Plan())
    assert fewest == tests_of(Plan(probe_every=3, within_task=True))


def test_a_future_task_can_be_tested_among_its_classes() -> None:
    learner = build("dcl", STREAM, "cpu", **SMALL["dcl"])
    rows = list(run(STREAM, learner, Plan(within_task=True, future_tasks=1), tasks=2))
    future = [
        row for row in rows if row["kind"] == "within_task" and row["tested"] > row["learned"]
    ]
    assert future
    assert any(row["correct"] > 0 for row in future)
    assert all(
        row["correct"] == 0
        for row in rows
        if row["kind"] == "test" and row["tested"] > row["learned"]
    )


def test_affine_maps_are_measured_on_the_first_the_last_and_a_new_task() -> None:
    learner = build("dcl", STREAM, "cpu", **SMALL["dcl"])
    rows = list(run(STREAM, learner, Plan(), tasks=3))
    assert [i for t, i in pairs(rows, "theta") if t == 2] == [0, 2, 4]
    errors = [row["squared_errors"] for row in rows if row["kind"] == "theta"][-1]
    assert len(errors) == 6
    assert min(errors) > 0


def test_one_shot_and_open_set_come_at_the_end_and_where_the_plan_says() -> None:
    learner = build("dcl", STREAM, "cpu", **SMALL["dcl"])
    rows = list(run(STREAM, learner, Plan(one_shot=(4,), open_set=True, final_after=(2,)), tasks=3))
    one_shot = [row for row in rows if row["kind"] == "one-shot"]
    assert [row["learned"] for row in one_shot] == [1] * 4 + [2] * 4
    assert {(row["mode"], row["factors"]) for row in one_shot} == {
        (m, f) for m in ("standard", "generalised") for f in ("grid", "continuous")
    }
    assert len([row for row in rows if row["kind"] == "open-set"]) == 2


def test_a_loss_that_is_not_finite_stops_the_run_and_says_where() -> None:
    class Diverging(Knowing):
        def learn(self, task: Task) -> Iterator[float]:
            yield 1.0
            yield float("nan") if task.index == 2 else 1.0

    rows: list[dict[str, Any]] = []
    with pytest.raises(DivergedError, match=r"became nan at step 6, step 2 of task 2"):
        rows.extend(row for row in run(LabelStream(), Diverging(100)))
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
    [
        {"every": 0},
        {"future_tasks": -1},
        {"probe_images": 0},
        {"max_test_tasks": 0},
        {"one_shot": (1,)},
        {"split": "train"},
        {"diagonal_images": -1},
    ],
)
def test_a_bad_plan_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(changes))):
        Plan(**changes)


def test_a_recorded_plan_has_no_evaluations_that_were_added_later() -> None:
    assert read_plan({"every": 5}) == Plan(every=5, diagonal_images=0)
    assert read_plan({"diagonal_images": 9}) == Plan(diagonal_images=9)


def test_scores_of_groups_are_those_of_single_tasks() -> None:
    learner = build("dcl", STREAM, "cpu", **SMALL["dcl"])
    for task in STREAM:
        for _ in learner.learn(task):
            pass
    tests = sets.TestSets(STREAM, None, "cpu")
    for result in score(learner, tests.groups(range(4))):
        batch = STREAM[result.task].test.batch(slice(None))
        assert result.correct == int((learner.predict(batch.images) == batch.labels).sum())
        assert result.total == len(batch.labels)


@pytest.mark.slow
def test_answers_are_of_the_task_s_classes_if_the_task_is_given() -> None:
    stream = STREAM.with_changes(scenario="task")
    for name in SMALL:
        learner = build(name, stream, "cpu", **SMALL[name])
        rows = list(run(stream, learner, Plan(within_task=True, probe_every=4, probe_images=1000)))
        counts = {
            kind: {(r["learned"], r["tested"]): r["correct"] for r in rows if r["kind"] == kind}
            for kind in ("test", "within_task")
        }
        assert counts["test"] == counts["within_task"]
        plain = list(run(STREAM, build(name, STREAM, "cpu", **SMALL[name])))
        assert sum(counts["test"].values()) > sum(
            r["correct"] for r in plain if r["kind"] == "test"
        )


def test_an_unseen_class_is_never_predicted_if_the_task_is_given() -> None:
    stream = STREAM.with_changes(scenario="task")
    learner = build("dcl", stream, "cpu", **SMALL["dcl"])
    rows = list(run(stream, learner, Plan(future_tasks=1), tasks=1))
    assert [row["correct"] for row in rows if row["kind"] == "test" and row["learned"] < 0] == [0]


def test_a_task_without_test_images_has_no_row_and_stops_nothing() -> None:
    stream = Stream(
        tasks=5, classes_per_task=2, values_per_factor=3, canvas=Canvas(size=16),
        scenario="blurry", seed=1,
    )  # fmt: skip
    empty = [task.index for task in stream if not len(task.test)]
    assert empty == [0]
    learner = build("dcl", stream, "cpu", **SMALL["dcl"])
    rows = list(run(stream, learner, Plan(within_task=True, probe_every=1)))
    for kind in ("test", "within_task", "probe", "theta"):
        assert not any(tested in empty for _, tested in pairs(rows, kind))
    assert [row["learned"] for row in rows if row["kind"] == "task"] == list(range(5))


@pytest.mark.parametrize("tasks", [-1, 5])
def test_too_many_tasks_are_refused_before_learning(tasks: int) -> None:
    with pytest.raises(ValueError, match=f"tasks must lie in 0 .. 4 .*, found {tasks}"):
        next(run(STREAM, Knowing(0), tasks=tasks))


def test_an_endless_stream_is_learned_for_so_many_tasks() -> None:
    stream = STREAM.with_changes(tasks=None)
    learner = build("dcl", stream, "cpu", **SMALL["dcl"])
    rows = list(run(stream, learner, Plan(one_shot=(4,), open_set=True), tasks=2))
    assert [tested for _, tested in pairs(rows, "theta")] == [0, 2, 0, 1, 2]
    assert {row["kind"] for row in rows[-8:]} == {"one-shot", "open-set", "diagonal", "task"}


@pytest.mark.parametrize("scenario", ["class", "domain", "nic", "blurry", "recurring"])
def test_the_task_that_is_never_learned_holds_none_of_the_stream_s_classes(scenario: str) -> None:
    stream = STREAM.with_changes(scenario=scenario)
    unseen = class_by_class(stream)[first_unseen_task(stream, 4)]
    assert not set(unseen.classes) & set(stream.class_ids)
    assert unseen.index >= 4


@pytest.mark.parametrize("name", SMALL)
def test_images_are_counted_where_a_task_has_fewer_than_a_batch(name: str) -> None:
    stream = STREAM.with_changes(tasks=2)
    learner = build(name, stream, "cpu", **(SMALL[name] | {"batch_size": 10_000, "epochs": 2}))
    counts = [row["images"] for row in run(stream, learner) if row["kind"] == "task"]
    a_task = 2 * len(stream[0].train)
    assert counts == ([a_task, 2 * a_task] if name == "joint" else [a_task, a_task])


def test_one_shot_on_the_grid_does_not_depend_on_what_the_stream_tests_on() -> None:
    stream = STREAM.with_changes(test_factors="continuous")
    learner = build("dcl", stream, "cpu", **SMALL["dcl"])
    tables = {factors: new_classes(stream, learner, factors)[0].test.factors for factors in FACTORS}
    assert len(np.unique(tables["grid"].x)) <= 3
    assert len(np.unique(tables["continuous"].x)) > 3
    usual = new_classes(stream, learner)[0].test.factors
    assert (usual.x == tables["continuous"].x).all()


@pytest.mark.parametrize("plan", [Plan(one_shot=(4,)), Plan(open_set=True)])
def test_new_classes_need_shapes_and_test_images(plan: Plan) -> None:
    with pytest.raises(ValueError, match="only a stream of sprites"):
        next(run(LabelStream(), Knowing(100), plan))
    with pytest.raises(ValueError, match="need test images"):
        next(run(STREAM.with_changes(split=(0.9, 0.1, 0.0)), Knowing(100), plan))


@pytest.mark.parametrize("wrong", [torch.nan, torch.inf])
def test_weights_that_are_not_finite_are_refused(wrong: float) -> None:
    state = {"net": {"weight": torch.tensor([1.0])}, "optimizer": [torch.tensor([0.0, 2.0])]}
    check_weights(state, 7)
    state["optimizer"][0][1] = wrong
    with pytest.raises(DivergedError, match=r"the learner's optimizer became .* in task 7"):
        check_weights(state, 7)


def test_peak_memory_is_counted_anew_for_every_run() -> None:
    # Mapped memory is returned for sure: an array may reuse what earlier tests have freed, and stay.
    with mmap(-1, 160_000_000) as held:
        for page in range(0, len(held), PAGESIZE):
            held[page] = 1
        before = measure_memory("cpu").peak
    reset_peak_memory("cpu")
    assert measure_memory("cpu").peak < before - 100_000_000


class Gaussians:
    """5 tasks of 4 Gaussian classes in 32 dimensions."""

    tasks = 5
    canvas = Canvas(size=32)

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


class Replay:
    """Experience replay with a reservoir; fine-tuning if its capacity is 0. SGD 0.05, momentum 0.9."""

    device = "cpu"
    batch_size = 32

    def __init__(self, capacity: int) -> None:
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 20))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.05, momentum=0.9)
        self.random = np.random.default_rng(0)
        self.capacity = capacity
        self.seen = 0
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
            self.seen += 1
            if len(self.kept) < self.capacity:
                self.kept.append(pair)
            elif self.capacity and (place := int(self.random.integers(self.seen))) < self.capacity:
                self.kept[place] = pair

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        with torch.no_grad():
            return self.net(images).argmax(1)

    def state(self) -> dict[str, Any]:
        return {"net": self.net.state_dict()}

    def load_state(self, state: dict[str, Any]) -> None:
        self.net.load_state_dict(state["net"])


def test_probes_show_the_stability_gap_of_replay_and_the_forgetting_of_fine_tuning() -> None:
    plan = Plan(probe_every=1, probe_images=100)
    rows = list(run(Gaussians(0), Replay(200), plan))
    old = [
        row for row in rows if row["kind"] == "test" and row["learned"] == 4 and row["tested"] < 4
    ]
    end = sum(row["correct"] for row in old) / sum(row["total"] for row in old)
    lowest = min_accuracy(probes(rows), ends_of_tasks(rows))
    assert end - lowest >= 0.2
    naive = table(run(Gaussians(0), Replay(0), replace(plan, probe_every=0)))
    assert 0.2 <= average_accuracy(naive) <= 0.3
    assert backward_transfer(naive) < -0.8
