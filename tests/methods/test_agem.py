"""A-GEM turns a step where it would hurt the memory, and is fine-tuning where there is none."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy

from everlearn.core.settings import change_settings
from everlearn.memory import draw_replay_rows
from everlearn.methods import build
from everlearn.methods.agem import AGEM, Settings
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


def make(stream: Any, **changes: Any) -> AGEM:
    return AGEM(stream, change_settings(Settings(), changes, "agem"), "cpu")


@pytest.mark.parametrize(("stream", "schedule"), STREAMS)
def test_first_task_equals_fine_tuning(stream: Any, schedule: dict[str, Any]) -> None:
    assert_first_task_is_fine_tuning(make(stream, **schedule), stream, schedule)


def test_matches_a_plain_loop() -> None:
    learner = learn(make(POINTS, **TOY, momentum=0.0, reference_batch_size=8), [POINTS[0]])
    rows = draw_replay_rows(
        POINTS.seed, 1, learner.buffer.filled, learner.trainer.count_steps(POINTS[1]), 8
    )
    net, turned = learner.trainer.net, 0
    plain = make(POINTS, **TOY).trainer.net
    plain.load_state_dict(net.state_dict())
    steps = zip(
        learner.learn(POINTS[1]), POINTS[1].batches(32, 5, drop_last=True), rows, strict=True
    )
    for _, batch, asked in steps:
        new = gradient(plain, batch.images, batch.labels)
        row = torch.from_numpy(asked)
        old = gradient(plain, learner.buffer.images(row), learner.buffer.targets(row))
        if new @ old < 0:
            new, turned = new - (new @ old) / (old @ old) * old, turned + 1
        vector = torch.nn.utils.parameters_to_vector(plain.parameters()).detach() - 0.05 * new
        torch.nn.utils.vector_to_parameters(vector, plain.parameters())
        for one, two in zip(net.parameters(), plain.parameters(), strict=True):
            torch.testing.assert_close(one, two, atol=1e-5, rtol=1e-4)
    assert turned > 0


def gradient(net: torch.nn.Module, images: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    loss = cross_entropy(net(images), targets)
    found = torch.autograd.grad(loss, list(net.parameters()))
    return torch.cat([part.flatten() for part in found])


def test_reference_gradients_leave_running_statistics_alone() -> None:
    schedule = {**STREAMS[1][1], "learning_rate": 0.0, "final_learning_rate": 0.0}
    plain = learn(build("fine-tuning", IMAGES, "cpu", **schedule), IMAGES)
    assert same_net(learn(make(IMAGES, **schedule), IMAGES), plain)


def test_buffer_holds_images_of_every_task() -> None:
    learner = learn(make(POINTS, **TOY, images_per_task=7), POINTS)
    targets = learner.buffer.targets(torch.arange(21))
    assert learner.buffer.filled == learner.buffer.capacity == 21
    for index, own in enumerate(targets.split(7)):
        assert set(own.tolist()) <= set(POINTS[index].classes)
    drawn = {tuple(row) for row in learner.buffer.images(torch.arange(21)).flatten(1).tolist()}
    assert len(drawn) == 21


def test_small_tasks_are_stored_completely() -> None:
    stream = Gaussians(tasks=2, classes_per_task=2, train=3)
    learner = learn(make(stream, **{**TOY, "batch_size": 4}), stream)
    assert learner.buffer.filled == 12


def test_learns_more_tasks_than_reference_images() -> None:
    stream = Gaussians(tasks=70, classes_per_task=2, dimensions=4, train=6, test=5)
    learner = make(stream, **{**TOY, "batch_size": 4, "epochs": 1})
    losses = torch.stack([loss for task in stream for loss in learner.learn(task)])
    assert learner.buffer.filled == 700
    assert losses.isfinite().all()


def test_resumes_bit_for_bit() -> None:
    whole, second = assert_resumes(partial(make, POINTS, **TOY), POINTS)
    assert torch.equal(second.state()["memory"]["images"], whole.state()["memory"]["images"])


@pytest.mark.integration
def test_forgets_the_toy_stream_like_fine_tuning() -> None:
    assert toy_accuracy(partial(make, **TOY)) <= 0.35


@pytest.mark.parametrize("name", ["images_per_task", "reference_batch_size"])
def test_settings_out_of_range_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=rf"{name} must lie in 1 \.\. 1000000, found 0"):
        make(POINTS, **{name: 0})
