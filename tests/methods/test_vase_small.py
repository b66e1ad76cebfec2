"""VASE goes from environment to environment untold: V7 and V8 on noise, V10 to V12 on real images."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from everlearn import Canvas
from everlearn.methods import build
from everlearn.presets import PRESETS
from everlearn.stream.named import named
from everlearn.stream.task import Split, Task

from .conftest import learn

pytestmark = pytest.mark.slow

SMALL = PRESETS["environments"].settings_of("vase")
# Of noise there is nothing to say, and a code that may say much tells its levels apart by itself.
NOISE = SMALL | {"capacity": 0.5, "capacity_steps": 100, "quiet": 100}
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@dataclass(frozen=True)
class Drawn:
    """Images that are there."""

    images: Tensor

    def drawer(self, device: str) -> Callable[[Tensor], Tensor]:
        images = self.images.to(device)
        return lambda rows: images[rows]


@dataclass(frozen=True)
class Levels:
    """A stream of environments that have nothing in common: uniform noise, 0.2 wide, around levels."""

    levels: tuple[float, ...]
    batches: int
    seed: int = 0
    online: bool = False
    canvas: Canvas = Canvas(size=16)

    @property
    def tasks(self) -> int:
        return len(self.levels)

    @property
    def class_ids(self) -> range:
        return range(self.tasks)

    def __getitem__(self, index: int) -> Task:
        source = torch.Generator().manual_seed(self.seed + index)
        noise = torch.rand((64 * self.batches, 1, 16, 16), generator=source) - 0.5
        pictures = Drawn(self.levels[index] + 0.2 * noise)
        none = Split(np.zeros(0, np.int64), pictures)
        train = Split(np.full(len(noise), index), pictures)
        return Task(index, (index,), train, none, none, none, self.seed)


def opened(learner: Any) -> list[int]:
    """The steps at which environments were opened, in their order."""
    notes = [float(learner.notes()[f"opened_{number}"]) for number in range(1, 5)]
    return [int(step) for step in notes if step == step]


@pytest.mark.parametrize("device", DEVICES)
def test_v7_three_environments_are_found_within_five_batches_and_no_more(device: str) -> None:
    stream = Levels((0.1, 0.5, 0.9), 334)
    learner = learn(build("vase", stream, device, **NOISE), stream)
    assert learner.steps == 1002
    first, second = opened(learner)
    assert 334 < first <= 334 + 5
    assert 668 < second <= 668 + 5


@pytest.mark.parametrize("device", DEVICES)
def test_v8_environments_that_come_back_are_recognised(device: str) -> None:
    stream = Levels((0.1, 0.5, 0.1, 0.5), 300)
    learner = build("vase", stream, device, **NOISE)
    for number, task in enumerate(stream):
        active = [int(learner.world.active) for _ in learner.learn(task)]
        assert set(active[5:]) == {number % 2}
    assert learner.world.count == 2
    assert learner.world.switches == 3


@pytest.fixture
def environments() -> Any:
    """Moving Fashion-MNIST, MNIST and moving MNIST, 600 batches each, or skip the test."""
    beside = Path(__file__).parents[3] / "shared" / "data"
    folder = os.environ.get("EVERLEARN_DATA") or str(beside)
    stream = named("vase-a").with_changes(data=folder, size=32, train=64 * 600, test=1000)
    try:
        return list(stream), stream
    except FileNotFoundError as problem:
        pytest.skip(f"needs real data: {problem}")


def go_on(learner: Any, tasks: Iterable[Task], images: Tensor) -> float:
    """Learn tasks; how many nats more are lost of images than before."""
    before = float(learner.errors(images).mean())
    return float(learn(learner, tasks).errors(images).mean()) - before


def watch(learner: Any, tasks: Iterable[Task]) -> None:
    """V11: learn tasks; what must hold at every step does."""
    seen = []
    for task in tasks:
        for _ in learner.learn(task):
            world = learner.world
            seen.append((int(world.active), float(world.capacity())))
            assert world.masks.any(1).all(), "V11: one latent at least applies"
            assert world.masks[0].all(), "V11: all apply in the first environment"
    for (place, before), (next_place, after) in pairwise(seen):
        assert after >= before or place != next_place, "V11: capacity does not fall"


@pytest.mark.timeout(900)
def test_v10_v11_and_v12_hold(environments: Any) -> None:
    """One test for all: its runs take a minute, and workers that share tests would repeat them."""
    tasks, stream = environments
    images = tasks[0].test.batch(slice(None)).images
    whole, none, told = (
        build(name, stream, "cpu", **SMALL | changes)
        for name, changes in [
            ("vase", {}),
            ("cci-vae", {}),
            ("vase", {"switches": "told", "masks": False}),
        ]
    )
    watch(whole, tasks[:1])
    first, before = deepcopy(whole.state()), float(whole.errors(images).mean())
    for other in (none, told):
        other.load_state(first)  # in the first environment they do not differ
    rise = go_on(none, tasks[1:], images)
    assert go_on(told, tasks[1:], images) <= 0.8 * rise, "V10: dreams remember"
    watch(whole, tasks[1:])
    assert float(whole.errors(images).mean()) - before <= 0.9 * rise, "V10: as do all parts, untold"
    assert rise > 10, "V10: there is something to forget"
    assert whole.world.count == 3, "V12: three environments are opened"
    assert [(step - 1) // 600 for step in opened(whole)] == [1, 2], "V12: each in its own stage"
