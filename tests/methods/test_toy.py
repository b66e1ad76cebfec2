"""The toy protocol of the specification, three seeds a method: B12 and B13; B14, one task alone."""

from __future__ import annotations

from functools import cache
from statistics import mean
from typing import Any

import pytest
import torch

from everlearn.evaluate import run
from everlearn.exam import Plan
from everlearn.methods import METHODS, build
from everlearn.metrics import average_accuracy, table
from everlearn.presets import PRESETS
from everlearn.stream import Gaussians

from .conftest import learn

pytestmark = pytest.mark.slow

SEEDS = (0, 1, 2)
# Lowest and highest mean accuracy; settings are those of the preset where none are named.
RANGES: list[tuple[str, dict[str, Any], float, float]] = [
    ("fine-tuning", {}, 0.20, 0.27),
    ("joint", {"every": 5}, 0.97, 1.0),
    ("lwf", {"weight": 0.1}, 0.0, 0.30),
    ("online-ewc", {"strength": 0.3}, 0.0, 0.30),
    ("agem", {}, 0.0, 0.35),
    ("er", {"memory": 50, "apart": True}, 0.5, 0.8),
    ("er", {"memory": 200}, 0.90, 1.0),
    ("der", {}, 0.70, 1.0),
    ("der++", {}, 0.87, 1.0),
    ("si", {"strength": 5.0}, 0.75, 1.0),
]
# What these learn in a single task is no plain cross-entropy on its images, by their definition.
OTHERWISE = {
    **dict.fromkeys(
        ("cwr", "cwr-plus", "cwr-star", "ar1", "ar1-star", "ar1-free", "latent-replay", "gnr"),
        "a head without bias that starts at 0, and rates of its own",
    ),
    "bir": "a generator in the same net",
    **dict.fromkeys(
        ("beta-vae", "cci-vae", "contrastive", "dcl", "dcl-plus", "vase"), "no classifier"
    ),
    "gdumb": "learns from its memory alone",
    "icarl": "sigmoid outputs",
    "l2p": "prompts of a frozen net",
    "l2p-lite": "prompts of a frozen net",
    "nearest-mean": "answers by means",
    "pcr": "proxies of the classes in a batch",
    "hpcr": "proxies of the classes in a batch",
}


def settings(name: str, **changes: Any) -> dict[str, Any]:
    return PRESETS["toy"].settings_of(name) | changes


@cache
def learned(name: str, seed: int, changes: tuple[tuple[str, Any], ...]) -> Any:
    stream = Gaussians(seed=seed)
    learner = build(name, stream, "cpu", **settings(name, **dict(changes)))
    return table(list(run(stream, learner, Plan(every=stream.tasks))))


@pytest.mark.parametrize(
    ("name", "changes", "least", "most"), RANGES, ids=[f"{r[0]}-{r[1]}" for r in RANGES]
)
def test_b12_accuracies_of_the_toy_protocol(
    name: str, changes: dict[str, Any], least: float, most: float
) -> None:
    found = [average_accuracy(learned(name, seed, tuple(changes.items()))) for seed in SEEDS]
    assert least <= mean(found) <= most, found


def test_b13_fine_tuning_forgets_the_first_task() -> None:
    for seed in SEEDS:
        assert learned("fine-tuning", seed, ()).accuracy[-1, 0] <= 0.10


def weights(name: str, stream: Gaussians) -> list[torch.Tensor]:
    learner = build(name, stream, "cpu", **settings(name, epochs=2))
    return list(learn(learner, stream).state()["net"].values())


@pytest.mark.parametrize("name", [name for name in METHODS if name not in OTHERWISE])
def test_b14_on_a_single_task_a_method_is_fine_tuning(name: str) -> None:
    stream = Gaussians(tasks=1)
    plain, found = weights("fine-tuning", stream), weights(name, stream)
    assert all(map(torch.equal, plain, found))
