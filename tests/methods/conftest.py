"""What tests of methods share: streams, settings, how tasks are learned, and what many must pass.

Test files say `from .conftest import`: pytest has loaded it by then, whatever folders are on the path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from everlearn import Canvas, Stream
from everlearn.methods import build
from everlearn.presets import PRESETS
from everlearn.stream import Gaussians, Task

# Epochs are named, though 5 is fine-tuning's own: some tests change settings that have fewer.
TOY = PRESETS["toy"].settings_of("fine-tuning") | {"epochs": 5}
STREAM = Gaussians(seed=1, tasks=3, classes_per_task=2, dimensions=8, train=40)
STUDY = {
    "net": "mlp",
    "batch_size": 16,
    "epochs": 2,
    "rate": 0.01,
    "final_rate": None,
    "unmet": True,
    "fresh": False,
}
IMAGES = Stream(
    tasks=2, classes_per_task=2, values_per_factor=3, canvas=Canvas(size=16), split=(0.8, 0.1, 0.1)
)


def learn(learner: Any, tasks: Iterable[Task]) -> Any:
    """Learn tasks to their ends."""
    for task in tasks:
        for _ in learner.learn(task):
            pass
    return learner


def toy_accuracy(make: Callable[[Gaussians], Any], seeds: Iterable[int] = (0,)) -> float:
    """Learn the toy stream of each seed; tell the share of all test points that are named right."""
    right: list[bool] = []
    for stream in (Gaussians(seed=seed) for seed in seeds):
        learner = learn(make(stream), stream)
        for batch in (task.test.batch(slice(None)) for task in stream):
            right += (learner.predict(batch.images) == batch.labels).tolist()
    return sum(right) / len(right)


def weights(learner: Any) -> list[Tensor]:
    """All weights and kept moments of a net, in its order."""
    return list(learner.state()["net"].values())


def same(ones: Iterable[Tensor], twos: Iterable[Tensor]) -> bool:
    """Tell whether tensors are equal, pair by pair and to the bit."""
    return all(torch.equal(one, two) for one, two in zip(ones, twos, strict=True))


def same_net(one: Any, two: Any) -> bool:
    """Tell whether two learners have the same net."""
    return same(weights(one), weights(two))


def assert_plain_first(learner: Any, stream: Any, settings: dict[str, Any]) -> None:
    """B14: what a new learner makes of the first task is what fine-tuning makes of it."""
    plain = learn(build("fine-tuning", stream, "cpu", **settings), [stream[0]])
    assert same_net(learn(learner, [stream[0]]), plain)


def assert_goes_on(
    make: Callable[[], Any], tasks: Iterable[Task], stop: int = 1
) -> tuple[Any, Any]:
    """Learn tasks in one go, and from a state stored at a stop: the bits are the same. Return both."""
    tasks = list(tasks)
    whole, second = learn(make(), tasks), make()
    second.load_state(learn(make(), tasks[:stop]).state())
    assert same_net(learn(second, tasks[stop:]), whole)
    return whole, second


def assert_nothing_pulls(learner: Any) -> None:
    """B3: weights where the anchor holds them have neither a penalty nor its slope."""
    for weight in learner.student.weights:
        weight.grad = torch.zeros_like(weight)
    assert learner.anchor.pull() == 0
    assert not any(weight.grad.any() for weight in learner.student.weights)
