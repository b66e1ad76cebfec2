"""Every method passes the exam for learners; learners that misbehave do not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from everlearn import Canvas, Stream
from everlearn.checks import CHECKS, FailedCheckError
from everlearn.exam.costs import count_bytes, tensors
from everlearn.learner import Learner
from everlearn.methods import METHODS, build
from everlearn.presets import PRESETS
from everlearn.stream import Gaussians, Task

POINTS = Gaussians(tasks=3, classes_per_task=3, dimensions=8, train=40, val=4, test=10)
SPRITES = Stream(
    tasks=3, classes_per_task=2, values_per_factor=3, canvas=Canvas(size=16), split=(0.6, 0.1, 0.3)
)
CODERS = {"vase", "cci-vae", "beta-vae"}
NEEDS_IMAGES = {"dcl", "dcl-plus", "l2p", "l2p-lite", *CODERS}
# By definition these keep something of every task: images, or one exemplar a class.
STORES_TASKS = {"agem", "gem", "contrastive"}
# By definition these read values back: GEM solves a problem on the CPU, the others decide by them.
READERS = {"gem", "contrastive", "gdumb", "joint", "cumulative"}
# The same learner as others with other settings: examined on points, not again on sprites.
ALIKE = {"cwr", "cwr-plus", "ar1", "ar1-free", "cci-vae", "beta-vae"}
# These are examined by `make check`, all by `make test`.
QUICK = {"dcl", "fine-tuning", "lwf", "er", "si"}
FEW = {"epochs": 2, "batch_size": 32, "memory": 40}
# So small, and so easily surprised, that a few steps bring environments and dreams of them.
CODER = {
    "net": "vase-flat",
    "z": 4,
    "most": 4,
    "tau": 2,
    "capacity_steps": 2,
    "kappa": 1,
    "spreads": 0,
}


def examined(names: Iterable[str]) -> list[Any]:
    slow = pytest.mark.slow
    return [n if n in QUICK else pytest.param(n, marks=slow) for n in sorted(names)]


def small(name: str, preset: str) -> dict[str, Any]:
    known = PRESETS[preset]._replace(common=PRESETS[preset].common | FEW)
    own = known.settings_of(name) | {"epochs": 2} | ({"units": 64} if name == "bir" else {})
    own |= CODER if name in CODERS else {}
    return own | ({"weights": "random"} if name.startswith("l2p") else {})


def on_points(name: str) -> Any:
    return lambda stream: build(name, stream, "cpu", **small(name, "toy"))


def on_sprites(name: str) -> Any:
    return lambda stream: build(name, stream, "cpu", **small(name, "small"))


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", examined(set(METHODS) - NEEDS_IMAGES))
def test_methods_pass_the_exam_on_points(name: str, check: str) -> None:
    CHECKS[check](on_points(name), POINTS)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", examined(NEEDS_IMAGES))
def test_methods_that_need_images_pass_the_exam_on_sprites(name: str, check: str) -> None:
    CHECKS[check](on_sprites(name), SPRITES)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in METHODS if n not in NEEDS_IMAGES | ALIKE])
def test_methods_go_on_from_their_state_with_normalised_nets(name: str) -> None:
    CHECKS["goes_on_from_its_state"](on_sprites(name), SPRITES)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["domain", "recurring", "blurry", "nic"])
@pytest.mark.parametrize("name", [name for name in METHODS if name not in ALIKE])
def test_methods_learn_any_scenario(name: str, scenario: str) -> None:
    stream = SPRITES.with_changes(scenario=scenario)
    learner = on_sprites(name)(stream)
    for task in stream:
        losses = [float(loss) for loss in learner.learn(task)]
        assert all(map(torch.isfinite, map(torch.tensor, losses)))
    images = stream[0].test.batch(slice(None)).images
    assert set(learner.predict(images).tolist()) <= set(stream.class_ids)


@pytest.mark.parametrize("name", examined(set(METHODS) - NEEDS_IMAGES - STORES_TASKS))
def test_what_is_stored_does_not_grow_with_the_tasks(name: str) -> None:
    stream = POINTS.with_changes(tasks=8)
    few = {"memory": 12} if "memory" in small(name, "toy") else {}
    learner, sizes = build(name, stream, "cpu", **small(name, "toy") | few), []
    for task in stream:
        for _ in learner.learn(task):
            pass
        sizes.append(count_bytes(learner.state()))
    names = 8 * stream.classes_per_task * 3  # a method may list the classes it has met
    assert 0 <= sizes[-1] - sizes[4] <= names


EMPTY = Stream(
    seed=13,
    tasks=6,
    classes_per_task=2,
    values_per_factor=3,
    canvas=Canvas(size=16),
    split=(0.6, 0.1, 0.3),
    scenario="blurry",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_methods_learn_nothing_from_an_empty_task_and_go_on_after_it(name: str) -> None:
    none, some = EMPTY[0], EMPTY[1]
    assert not len(none.train)
    whole, first, second = (on_sprites(name)(EMPTY) for _ in range(3))
    for learner in (whole, first):
        assert not list(learner.learn(none))
    second.load_state(first.state())
    for learner, task in [(whole, some), (second, some), (whole, none), (second, none)]:
        for _ in learner.learn(task):
            pass
    images = some.test.batch(slice(None)).images
    assert set(whole.predict(images).tolist()) <= set(some.classes)
    for a, b in zip(tensors(whole.state()), tensors(second.state()), strict=True):
        assert torch.equal(a, b)


class Good:
    """Counts the images of each class and names the most frequent class."""

    device, batch_size = "cpu", 10

    def __init__(self, stream: Any) -> None:
        self.counts = torch.zeros(len(stream.class_ids)) + 1e-3 * stream.seed
        self.met: list[int] = []

    def learn(self, task: Task) -> Iterator[Tensor]:
        self.met = sorted({*self.met, *task.classes})
        for batch in task.batches(10):
            self.counts.index_add_(0, batch.labels, torch.ones(len(batch.labels)))
            yield self.counts.mean()

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        allowed = self.met if among is None else list(among)
        best = max(allowed, key=lambda label: float(self.counts[label]), default=-1)
        return torch.full((len(images),), best)

    def state(self) -> dict[str, Any]:
        return {"counts": self.counts, "met": list(self.met)}

    def load_state(self, state: dict[str, Any]) -> None:
        self.counts.copy_(state["counts"])
        self.met = list(state["met"])


class Silent(Good):
    def learn(self, task: Task) -> Iterator[Tensor]:
        list(super().learn(task))
        yield from ()


class Guessing(Good):
    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        return torch.zeros(len(images), dtype=torch.int64)


class Nervous(Good):
    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        self.counts += 1
        return super().predict(images, among)


class Moody(Good):
    moods = 0

    def learn(self, task: Task) -> Iterator[Tensor]:
        Moody.moods += 1
        self.counts += Moody.moods
        yield from super().learn(task)


class Careless(Good):
    def load_state(self, state: dict[str, Any]) -> None:
        self.met = list(state["met"])


class Miscounting(Good):
    tasks = 0

    def learn(self, task: Task) -> Iterator[Tensor]:
        yield from super().learn(task)
        self.tasks += 1

    def state(self) -> dict[str, Any]:
        return {**super().state(), "tasks": self.tasks}


class Piling(Good):
    def load_state(self, state: dict[str, Any]) -> None:
        self.counts += state["counts"] - 1e-3 * POINTS.seed
        self.met = list(state["met"])


class Fixed(Good):
    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self.counts.zero_()


@pytest.mark.parametrize("check", CHECKS)
def test_a_good_learner_passes(check: str) -> None:
    CHECKS[check](Good, POINTS)


@pytest.mark.parametrize(
    ("learner", "check"),
    [
        (Silent, "gives_a_loss_after_every_step"),
        (Guessing, "answers_with_classes_it_met"),
        (Nervous, "is_not_changed_by_questions"),
        (Moody, "gives_the_same_bits_twice"),
        (Careless, "goes_on_from_its_state"),
        (Miscounting, "goes_on_from_its_state"),
        (Piling, "goes_on_from_its_state"),
        (Fixed, "depends_on_the_seed"),
    ],
)
def test_a_learner_that_misbehaves_is_found_out(learner: type[Learner], check: str) -> None:
    with pytest.raises(FailedCheckError):
        CHECKS[check](learner, POINTS)


@pytest.mark.gpu
@pytest.mark.parametrize(
    "check",
    ["gives_the_same_bits_twice", "goes_on_from_its_state", "is_not_changed_by_questions"],
)
@pytest.mark.parametrize("name", METHODS)
def test_methods_pass_the_exam_on_a_gpu(name: str, check: str) -> None:
    CHECKS[check](lambda stream: build(name, stream, "cuda", **small(name, "small")), SPRITES)


@pytest.mark.gpu
@pytest.mark.parametrize("name", [name for name in METHODS if name not in READERS])
def test_no_step_waits_for_the_gpu(name: str) -> None:
    learner = build(name, SPRITES, "cuda", **small(name, "small"))
    for _ in learner.learn(SPRITES[0]):
        pass
    steps = iter(learner.learn(SPRITES[1]))
    next(steps)  # captures
    torch.cuda.set_sync_debug_mode("error")
    try:
        next(steps)
    finally:
        torch.cuda.set_sync_debug_mode("default")
