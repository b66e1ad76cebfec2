"""Streams, settings and assertions that tests of methods share.

Test files say `from .conftest import`: pytest has loaded it by then, whatever folders are on the path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from everlearn import Canvas, Stream
from everlearn.methods import build
from everlearn.runs.presets import PRESETS
from everlearn.stream import Gaussians, Task

# Epochs are given, although 5 is the default: some tests change settings that have fewer.
TOY = PRESETS["toy"].settings_of("fine-tuning") | {"epochs": 5}
STREAM = Gaussians(seed=1, tasks=3, classes_per_task=2, dimensions=8, train=40)
TRAIN = {
    "net": "mlp",
    "batch_size": 16,
    "epochs": 2,
    "learning_rate": 0.01,
    "final_learning_rate": None,
    "include_unseen": True,
    "reset_optimizer": False,
}
IMAGES = Stream(
    tasks=2, classes_per_task=2, values_per_factor=3, canvas=Canvas(size=16), split=(0.8, 0.1, 0.1)
)


def learn(learner: Any, tasks: Iterable[Task]) -> Any:
    """Learn tasks completely; return the learner."""
    for task in tasks:
        for _ in learner.learn(task):
            pass
    return learner


def toy_accuracy(make: Callable[[Gaussians], Any], seeds: Iterable[int] = (0,)) -> float:
    """Learn the toy stream of each seed; return the accuracy on all test points."""
    correct: list[bool] = []
    for stream in (Gaussians(seed=seed) for seed in seeds):
        learner = learn(make(stream), stream)
        for batch in (task.test.batch(slice(None)) for task in stream):
            correct += (learner.predict(batch.images) == batch.labels).tolist()
    return sum(correct) / len(correct)


def weights(learner: Any) -> list[Tensor]:
    """Return all weights and running statistics of a net."""
    return list(learner.state()["net"].values())


def same(first: Iterable[Tensor], second: Iterable[Tensor]) -> bool:
    """Return whether tensors are equal, pair by pair."""
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def same_net(first: Any, second: Any) -> bool:
    """Return whether two learners have the same net."""
    return same(weights(first), weights(second))


def assert_first_task_is_fine_tuning(learner: Any, stream: Any, settings: dict[str, Any]) -> None:
    """Check that a new learner learns the first task as fine-tuning does, bit for bit."""
    plain = learn(build("fine-tuning", stream, "cpu", **settings), [stream[0]])
    assert same_net(learn(learner, [stream[0]]), plain)


def assert_resumes(
    make: Callable[[], Any], tasks: Iterable[Task], stop: int = 1
) -> tuple[Any, Any]:
    """Check that a learner resumed after `stop` tasks equals an uninterrupted one; return both."""
    tasks = list(tasks)
    uninterrupted = learn(make(), tasks)
    resumed = make()
    resumed.load_state(learn(make(), tasks[:stop]).state())
    assert same_net(learn(resumed, tasks[stop:]), uninterrupted)
    return uninterrupted, resumed


def assert_no_penalty(learner: Any) -> None:
    """Check that the penalty and its gradient are zero at the current weights."""
    for weight in learner.trainer.weights:
        weight.grad = torch.zeros_like(weight)
    assert learner.penalty.add_gradients() == 0
    assert not any(weight.grad.any() for weight in learner.trainer.weights)
