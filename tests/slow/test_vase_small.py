"""VASE infers environments: on noise, and on real images with what it forgets."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from everlearn import Canvas
from everlearn.methods import build
from everlearn.runs.presets import PRESETS
from everlearn.stream.named import named
from everlearn.stream.task import Split, Task

from ..conftest import needs_data
from ..methods.conftest import learn

pytestmark = pytest.mark.slow

SMALL = PRESETS["environments"].settings_of("vase")
# With much capacity a code would encode the level of the noise, and no batch would be surprising.
NOISE = SMALL | {"capacity": 0.5, "capacity_steps": 100, "min_environment_steps": 100}
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@dataclass(frozen=True)
class Stored:
    """Images in memory."""

    images: Tensor

    def loader(self, device: str) -> Callable[[Tensor], Tensor]:
        images = self.images.to(device)
        return lambda rows: images[rows]


@dataclass(frozen=True)
class Levels:
    """A stream of disjoint environments: uniform noise, 0.2 wide, around levels."""

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
        generator = torch.Generator().manual_seed(self.seed + index)
        noise = torch.rand((64 * self.batches, 1, 16, 16), generator=generator) - 0.5
        images = Stored(self.levels[index] + 0.2 * noise)
        empty = Split(np.zeros(0, np.int64), images)
        train = Split(np.full(len(noise), index), images)
        return Task(index, (index,), train, empty, empty, empty, self.seed)


def opened(learner: Any) -> list[int]:
    """Return the steps at which environments opened, in order."""
    steps = [float(learner.diagnostics()[f"opened_{number}"]) for number in range(1, 5)]
    return [int(step) for step in steps if not math.isnan(step)]


@pytest.mark.parametrize("device", DEVICES)
def test_disjoint_environments_open_within_five_batches_and_no_others(device: str) -> None:
    stream = Levels((0.1, 0.5, 0.9), 334)
    learner = learn(build("vase", stream, device, **NOISE), stream)
    assert learner.steps == 1002
    first, second = opened(learner)
    assert 334 < first <= 334 + 5
    assert 668 < second <= 668 + 5


@pytest.mark.parametrize("device", DEVICES)
def test_recurring_environments_are_recognised(device: str) -> None:
    stream = Levels((0.1, 0.5, 0.1, 0.5), 300)
    learner = build("vase", stream, device, **NOISE)
    for number, task in enumerate(stream):
        active = [int(learner.environments.state.active) for _ in learner.learn(task)]
        assert set(active[5:]) == {number % 2}
    assert learner.environments.state.count == 2
    assert learner.environments.state.switches == 3


@pytest.fixture
def environments() -> Any:
    """Moving Fashion-MNIST, MNIST and moving MNIST, 600 batches each, or skip the test."""
    with needs_data() as folder:
        stream = named("vase-a").with_changes(data=folder, size=32, train=64 * 600, test=1000)
        return list(stream), stream


def rise_of_error(learner: Any, tasks: Iterable[Task], images: Tensor) -> float:
    """Learn tasks; return by how many nats the reconstruction error of images rises."""
    before = float(learner.reconstruction_errors(images).mean())
    return float(learn(learner, tasks).reconstruction_errors(images).mean()) - before


def learn_and_check(learner: Any, tasks: Iterable[Task]) -> None:
    """Learn tasks; check masks and capacity after every step."""
    seen = []
    for task in tasks:
        for _ in learner.learn(task):
            environments = learner.environments
            seen.append((int(environments.state.active), float(environments.capacity())))
            assert environments.state.masks.any(1).all(), "every environment has an unmasked latent"
            assert environments.state.masks[0].all(), "the first environment has no mask"
    for (environment, before), (next_environment, after) in pairwise(seen):
        assert after >= before or environment != next_environment, "capacity fell"


@pytest.mark.timeout(900)
def test_vase_opens_three_environments_and_forgets_less_than_cci_vae(environments: Any) -> None:
    """One test for all claims, because its runs take a minute."""
    tasks, stream = environments
    images = tasks[0].test.batch(slice(None)).images
    vase, cci_vae, dreaming = (
        build(name, stream, "cpu", **SMALL | changes)
        for name, changes in [
            ("vase", {}),
            ("cci-vae", {}),
            ("vase", {"environment_switches": "given", "masks": False}),
        ]
    )
    learn_and_check(vase, tasks[:1])
    first = deepcopy(vase.state())
    before = float(vase.reconstruction_errors(images).mean())
    for other in (cci_vae, dreaming):
        other.load_state(first)  # in the first environment they do not differ
    rise = rise_of_error(cci_vae, tasks[1:], images)
    assert rise_of_error(dreaming, tasks[1:], images) <= 0.8 * rise, "dreams"
    learn_and_check(vase, tasks[1:])
    assert float(vase.reconstruction_errors(images).mean()) - before <= 0.9 * rise, (
        "all three parts, with inferred switches"
    )
    assert rise > 10, "CCI-VAE forgets"
    assert vase.environments.state.count == 3, "three environments"
    assert [(step - 1) // 600 for step in opened(vase)] == [1, 2], "each in its own stage"
