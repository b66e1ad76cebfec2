"""GEM lets no step hurt the memory of any past task, and is fine-tuning where there is none."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from everlearn.core.settings import change_settings
from everlearn.methods import build
from everlearn.methods.gem import GEM, Settings
from everlearn.stream import Gaussians

from .conftest import (
    IMAGES,
    TOY,
    assert_first_task_is_fine_tuning,
    assert_resumes,
    learn,
    same_net,
    toy_accuracy,
)

POINTS = Gaussians(seed=1, tasks=3, train=20, test=5)
STREAMS = [
    (POINTS, {**TOY, "batch_size": 16, "epochs": 2}),
    (IMAGES, {"net": "convnet-pooled", "batch_size": 32, "epochs": 1}),
]


def make(stream: Any, **changes: Any) -> GEM:
    return GEM(stream, change_settings(Settings(), changes, "gem"), "cpu")


@pytest.mark.parametrize(("stream", "schedule"), STREAMS)
def test_first_task_equals_fine_tuning(stream: Any, schedule: dict[str, Any]) -> None:
    assert_first_task_is_fine_tuning(make(stream, **schedule), stream, schedule)


def gradient(net: torch.nn.Module, images: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    found = torch.autograd.grad(cross_entropy(net(images), targets), list(net.parameters()))
    return torch.cat([part.flatten() for part in found]).double()


def turn(new: torch.Tensor, old: torch.Tensor, margin: float) -> torch.Tensor:
    """The dual of two past tasks by coordinate descent, until nothing moves."""
    products, gradients = (old @ old.T).numpy(), (old @ new).numpy()
    shares = np.full(2, margin)
    for _ in range(10_000):
        for own in range(2):
            best = shares[own] - (products[own] @ shares + gradients[own]) / products[own, own]
            shares[own] = max(margin, best)
    return new + torch.from_numpy(shares) @ old


@pytest.mark.parametrize("margin", [0.0, 0.5])
def test_matches_a_plain_loop(margin: float) -> None:
    changes = {**TOY, "epochs": 1, "momentum": 0.0, "images_per_task": 12, "margin": margin}
    learner = learn(make(POINTS, **changes), [POINTS[0], POINTS[1]])
    net, turned, buffer = learner.trainer.net, 0, learner.buffer
    memories = [(buffer.images(rows), buffer.targets(rows)) for rows in torch.arange(24).split(12)]
    plain = make(POINTS, **changes).trainer.net
    plain.load_state_dict(net.state_dict())
    batches = POINTS[2].batches(32, 1, drop_last=True)
    for _, batch in zip(learner.learn(POINTS[2]), batches, strict=True):
        old = torch.stack([gradient(plain, *memory) for memory in memories])
        new = gradient(plain, batch.images, batch.labels)
        if (old @ new < 0).any():
            new, turned = turn(new, old, margin), turned + 1
        vector = torch.nn.utils.parameters_to_vector(plain.parameters()).detach()
        torch.nn.utils.vector_to_parameters(vector - 0.05 * new.float(), plain.parameters())
        for one, two in zip(net.parameters(), plain.parameters(), strict=True):
            torch.testing.assert_close(one, two, atol=1e-5, rtol=1e-4)
    assert turned > 0


def test_memory_gradients_leave_running_statistics_alone() -> None:
    still = {**STREAMS[1][1], "learning_rate": 0.0, "final_learning_rate": 0.0}
    plain = learn(build("fine-tuning", IMAGES, "cpu", **still), IMAGES)
    assert same_net(learn(make(IMAGES, **still, images_per_task=20), IMAGES), plain)


def test_resumes_bit_for_bit() -> None:
    whole, second = assert_resumes(partial(make, POINTS, **TOY), POINTS)
    assert second.state()["counts"] == whole.state()["counts"] == [80, 80, 80]


@pytest.mark.integration
def test_remembers_the_toy_stream() -> None:
    assert toy_accuracy(partial(make, **TOY, images_per_task=10)) >= 0.5


def test_a_negative_margin_is_refused() -> None:
    with pytest.raises(ValueError, match="margin must lie in 0"):
        make(POINTS, margin=-0.5)
