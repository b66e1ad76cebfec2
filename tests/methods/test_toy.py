"""The toy protocol: accuracies of three seeds per method, and one task alone."""

from __future__ import annotations

from functools import cache
from statistics import mean
from typing import Any

import pytest
import torch

from everlearn.evaluate import run
from everlearn.evaluation import Plan
from everlearn.methods import METHODS, build
from everlearn.metrics import average_accuracy, table
from everlearn.runs.presets import PRESETS
from everlearn.stream import Gaussians

from .conftest import learn

pytestmark = pytest.mark.integration

SEEDS = (0, 1, 2)
# Lowest and highest mean accuracy; settings are those of the preset where none are named.
RANGES: list[tuple[str, dict[str, Any], float, float]] = [
    ("fine-tuning", {}, 0.20, 0.27),
    ("joint", {"retrain_every": 5}, 0.97, 1.0),
    ("lwf", {"distillation_weight": 0.1}, 0.0, 0.30),
    ("online-ewc", {"strength": 0.3}, 0.0, 0.30),
    ("agem", {}, 0.0, 0.35),
    ("er", {"buffer_size": 50, "separate_means": True}, 0.5, 0.8),
    ("er", {"buffer_size": 200}, 0.90, 1.0),
    ("der", {}, 0.70, 1.0),
    ("der++", {}, 0.87, 1.0),
    ("si", {"strength": 5.0}, 0.75, 1.0),
]


def settings(name: str, **changes: Any) -> dict[str, Any]:
    return PRESETS["toy"].settings_of(name) | changes


@cache
def learned(name: str, seed: int, changes: tuple[tuple[str, Any], ...]) -> Any:
    stream = Gaussians(seed=seed)
    learner = build(name, stream, "cpu", **settings(name, **dict(changes)))
    return table(list(run(stream, learner, Plan(every=stream.tasks))))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "changes", "lowest", "highest"), RANGES, ids=[f"{r[0]}-{r[1]}" for r in RANGES]
)
def test_accuracies_of_the_toy_protocol(
    name: str, changes: dict[str, Any], lowest: float, highest: float
) -> None:
    found = [average_accuracy(learned(name, seed, tuple(changes.items()))) for seed in SEEDS]
    assert lowest <= mean(found) <= highest, found


def test_fine_tuning_forgets_the_first_task() -> None:
    for seed in SEEDS:
        assert learned("fine-tuning", seed, ()).accuracy[-1, 0] <= 0.10


def weights(name: str, stream: Gaussians) -> list[torch.Tensor]:
    learner = build(name, stream, "cpu", **settings(name, epochs=2))
    return list(learn(learner, stream).state()["net"].values())


@pytest.mark.parametrize(
    "name", [name for name, method in METHODS.items() if not method.first_task]
)
def test_on_a_single_task_a_method_equals_fine_tuning(name: str) -> None:
    stream = Gaussians(tasks=1)
    plain, found = weights("fine-tuning", stream), weights(name, stream)
    assert all(map(torch.equal, plain, found))
