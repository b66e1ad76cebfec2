"""Every method passes the conformance checks; learners that misbehave fail them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from everlearn import Canvas, Stream
from everlearn.evaluation.conformance import CONFORMANCE, ConformanceError
from everlearn.evaluation.costs import count_bytes, tensors
from everlearn.learner import Learner
from everlearn.methods import METHODS, build
from everlearn.runs.presets import PRESETS
from everlearn.stream import Gaussians, Task

POINTS = Gaussians(tasks=3, classes_per_task=3, dimensions=8, train=40, val=4, test=10)
SPRITES = Stream(
    tasks=3, classes_per_task=2, values_per_factor=3, canvas=Canvas(size=16), split=(0.6, 0.1, 0.3)
)
CODERS = {"vase", "cci-vae", "beta-vae"}
NEEDS_IMAGES = {name for name, method in METHODS.items() if method.needs_images}
GROWS = {name for name, method in METHODS.items() if method.grows}
# These read values back from a GPU: GEM solves a problem on the CPU, the others decide by them.
READ_BACK = {"gem", "contrastive", "gdumb", "joint", "cumulative"}
# Other settings of a learner that is checked anyway: checked on points, not again on sprites.
VARIANTS = {"cwr", "cwr-plus", "ar1", "ar1-free", "cci-vae", "beta-vae"}
# These are checked by `make check`, all by `make test`.
QUICK = {"dcl", "fine-tuning", "lwf", "er", "si"}
FEW = {"epochs": 2, "batch_size": 32, "buffer_size": 40}
# So small, and with such low thresholds, that a few steps open environments and dream of them.
CODER = {
    "net": "vase-flat",
    "latent_dim": 4,
    "max_environments": 4,
    "snapshot_steps": 2,
    "capacity_steps": 2,
    "kappa": 1,
    "num_deviations": 0,
}


def with_marks(names: Iterable[str]) -> list[Any]:
    integration = pytest.mark.integration
    return [n if n in QUICK else pytest.param(n, marks=integration) for n in sorted(names)]


def small(name: str, preset: str) -> dict[str, Any]:
    known = PRESETS[preset]._replace(common={**PRESETS[preset].common, **FEW})
    settings = (
        known.settings_of(name) | {"epochs": 2} | ({"hidden_units": 64} if name == "bir" else {})
    )
    settings |= CODER if name in CODERS else {}
    return settings | ({"weights": "random"} if name.startswith("l2p") else {})


def on_points(name: str) -> Any:
    return lambda stream: build(name, stream, "cpu", **small(name, "toy"))


def on_sprites(name: str) -> Any:
    return lambda stream: build(name, stream, "cpu", **small(name, "small"))


@pytest.mark.parametrize("check", CONFORMANCE)
@pytest.mark.parametrize("name", with_marks(set(METHODS) - NEEDS_IMAGES))
def test_methods_conform_on_points(name: str, check: str) -> None:
    CONFORMANCE[check](on_points(name), POINTS)


@pytest.mark.parametrize("check", CONFORMANCE)
@pytest.mark.parametrize("name", with_marks(NEEDS_IMAGES))
def test_methods_that_need_images_conform_on_sprites(name: str, check: str) -> None:
    CONFORMANCE[check](on_sprites(name), SPRITES)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in METHODS if n not in NEEDS_IMAGES | VARIANTS])
def test_methods_resume_with_normalised_nets(name: str) -> None:
    CONFORMANCE["resumes_from_its_state"](on_sprites(name), SPRITES)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["domain", "recurring", "blurry", "nic"])
@pytest.mark.parametrize("name", [name for name in METHODS if name not in VARIANTS])
def test_methods_learn_any_scenario(name: str, scenario: str) -> None:
    stream = SPRITES.with_changes(scenario=scenario)
    learner = on_sprites(name)(stream)
    for task in stream:
        losses = [float(loss) for loss in learner.learn(task)]
        assert all(map(torch.isfinite, map(torch.tensor, losses)))
    images = stream[0].test.batch(slice(None)).images
    assert set(learner.predict(images).tolist()) <= set(stream.class_ids)


@pytest.mark.parametrize("name", with_marks(set(METHODS) - NEEDS_IMAGES - GROWS))
def test_state_does_not_grow_with_the_tasks(name: str) -> None:
    stream = POINTS.with_changes(tasks=8)
    few = {"buffer_size": 12} if "memory" in small(name, "toy") else {}
    learner, sizes = build(name, stream, "cpu", **small(name, "toy") | few), []
    for task in stream:
        for _ in learner.learn(task):
            pass
        sizes.append(count_bytes(learner.state()))
    class_ids = 8 * stream.classes_per_task * 3  # a method may list the classes it has seen
    assert 0 <= sizes[-1] - sizes[4] <= class_ids


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
def test_methods_learn_nothing_from_an_empty_task(name: str) -> None:
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


class MostFrequentClass:
    """Counts the images of each class and names the most frequent class."""

    device, batch_size = "cpu", 10

    def __init__(self, stream: Any) -> None:
        self.counts = torch.zeros(len(stream.class_ids)) + 1e-3 * stream.seed
        self.seen: list[int] = []

    def learn(self, task: Task) -> Iterator[Tensor]:
        self.seen = sorted({*self.seen, *task.classes})
        for batch in task.batches(10):
            self.counts.index_add_(0, batch.labels, torch.ones(len(batch.labels)))
            yield self.counts.mean()

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        allowed = self.seen if among is None else list(among)
        best = max(allowed, key=lambda label: float(self.counts[label]), default=-1)
        return torch.full((len(images),), best)

    def state(self) -> dict[str, Any]:
        return {"counts": self.counts, "seen": list(self.seen)}

    def load_state(self, state: dict[str, Any]) -> None:
        self.counts.copy_(state["counts"])
        self.seen = list(state["seen"])


class YieldsNothing(MostFrequentClass):
    def learn(self, task: Task) -> Iterator[Tensor]:
        list(super().learn(task))
        yield from ()


class AlwaysZero(MostFrequentClass):
    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        return torch.zeros(len(images), dtype=torch.int64)


class LearnsWhilePredicting(MostFrequentClass):
    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        self.counts += 1
        return super().predict(images, among)


class NotRepeatable(MostFrequentClass):
    tasks_learned = 0

    def learn(self, task: Task) -> Iterator[Tensor]:
        NotRepeatable.tasks_learned += 1
        self.counts += NotRepeatable.tasks_learned
        yield from super().learn(task)


class LoadsHalfItsState(MostFrequentClass):
    def load_state(self, state: dict[str, Any]) -> None:
        self.seen = list(state["seen"])


class NeverLoadsItsCounter(MostFrequentClass):
    tasks = 0

    def learn(self, task: Task) -> Iterator[Tensor]:
        yield from super().learn(task)
        self.tasks += 1

    def state(self) -> dict[str, Any]:
        return {**super().state(), "tasks": self.tasks}


class AddsToItsState(MostFrequentClass):
    def load_state(self, state: dict[str, Any]) -> None:
        self.counts += state["counts"] - 1e-3 * POINTS.seed
        self.seen = list(state["seen"])


class IgnoresTheSeed(MostFrequentClass):
    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self.counts.zero_()


@pytest.mark.parametrize("check", CONFORMANCE)
def test_a_conforming_learner_passes(check: str) -> None:
    CONFORMANCE[check](MostFrequentClass, POINTS)


@pytest.mark.parametrize(
    ("learner", "check"),
    [
        (YieldsNothing, "yields_finite_losses"),
        (AlwaysZero, "predicts_seen_classes"),
        (LearnsWhilePredicting, "predicting_changes_nothing"),
        (NotRepeatable, "repeats_bit_for_bit"),
        (LoadsHalfItsState, "resumes_from_its_state"),
        (NeverLoadsItsCounter, "resumes_from_its_state"),
        (AddsToItsState, "resumes_from_its_state"),
        (IgnoresTheSeed, "depends_on_the_seed"),
    ],
)
def test_a_learner_that_misbehaves_fails(learner: type[Learner], check: str) -> None:
    with pytest.raises(ConformanceError):
        CONFORMANCE[check](learner, POINTS)


@pytest.mark.gpu
@pytest.mark.parametrize(
    "check",
    ["repeats_bit_for_bit", "resumes_from_its_state", "predicting_changes_nothing"],
)
@pytest.mark.parametrize("name", METHODS)
def test_methods_conform_on_a_gpu(name: str, check: str) -> None:
    CONFORMANCE[check](lambda stream: build(name, stream, "cuda", **small(name, "small")), SPRITES)


@pytest.mark.gpu
@pytest.mark.parametrize("name", [name for name in METHODS if name not in READ_BACK])
def test_no_step_waits_for_the_gpu(name: str) -> None:
    # Several batches per epoch: the order of the rows is copied to the GPU when an epoch begins.
    learner = build(name, SPRITES, "cuda", **small(name, "small") | {"batch_size": 32})
    for _ in learner.learn(SPRITES[0]):
        pass
    steps = iter(learner.learn(SPRITES[1]))
    next(steps)  # captures
    torch.cuda.set_sync_debug_mode("error")
    try:
        next(steps)
    finally:
        torch.cuda.set_sync_debug_mode("default")
