"""A-GEM turns a step where it would hurt the memory, and is fine-tuning where there is none."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy

from everlearn.memory import draw_rows
from everlearn.methods import build
from everlearn.methods.agem import AGEM, Settings
from everlearn.settings import change_settings
from everlearn.stream import Gaussians

from .conftest import IMAGES, TOY, assert_goes_on, assert_plain_first, learn, same_net, toy_accuracy

POINTS = Gaussians(seed=1, tasks=3, train=20, test=5)
STREAMS = [
    (POINTS, {**TOY, "batch_size": 16, "epochs": 2}),
    (IMAGES, {"net": "convnet-pooled", "batch_size": 32, "epochs": 1}),
]


def make(stream: Any, **changes: Any) -> AGEM:
    return AGEM(stream, change_settings(Settings(), changes, "agem"), "cpu")


@pytest.mark.parametrize(("stream", "pace"), STREAMS)
def test_b14_the_first_task_is_fine_tuning(stream: Any, pace: dict[str, Any]) -> None:
    assert_plain_first(make(stream, **pace), stream, pace)


def test_a_step_is_that_of_a_plain_loop() -> None:
    learner = learn(make(POINTS, **TOY, momentum=0.0, reference=8), [POINTS[0]])
    rows = draw_rows(
        POINTS.seed, 1, learner.buffer.filled, learner.student.count_steps(POINTS[1]), 8
    )
    net, turned = learner.student.net, 0
    plain = make(POINTS, **TOY).student.net
    plain.load_state_dict(net.state_dict())
    steps = zip(
        learner.learn(POINTS[1]), POINTS[1].batches(32, 5, drop_last=True), rows, strict=True
    )
    for _, batch, asked in steps:
        new = slope(plain, batch.images, batch.labels)
        row = torch.from_numpy(asked)
        old = slope(plain, learner.buffer.images(row), learner.buffer.units(row))
        if new @ old < 0:
            new, turned = new - (new @ old) / (old @ old) * old, turned + 1
        vector = torch.nn.utils.parameters_to_vector(plain.parameters()).detach() - 0.05 * new
        torch.nn.utils.vector_to_parameters(vector, plain.parameters())
        for one, two in zip(net.parameters(), plain.parameters(), strict=True):
            torch.testing.assert_close(one, two, atol=1e-5, rtol=1e-4)
    assert turned > 0


def slope(net: torch.nn.Module, images: torch.Tensor, units: torch.Tensor) -> torch.Tensor:
    loss = cross_entropy(net(images), units)
    found = torch.autograd.grad(loss, list(net.parameters()))
    return torch.cat([part.flatten() for part in found])


def test_asking_the_memory_moves_no_kept_moment() -> None:
    pace = {**STREAMS[1][1], "rate": 0.0, "final_rate": 0.0}
    plain = learn(build("fine-tuning", IMAGES, "cpu", **pace), IMAGES)
    assert same_net(learn(make(IMAGES, **pace), IMAGES), plain)


def test_the_memory_holds_some_images_of_every_task() -> None:
    learner = learn(make(POINTS, **TOY, per_task=7), POINTS)
    units = learner.buffer.units(torch.arange(21))
    assert learner.buffer.filled == learner.buffer.capacity == 21
    for index, own in enumerate(units.split(7)):
        assert set(own.tolist()) <= set(POINTS[index].classes)
    drawn = {tuple(row) for row in learner.buffer.images(torch.arange(21)).flatten(1).tolist()}
    assert len(drawn) == 21


def test_tasks_smaller_than_their_share_are_kept_whole() -> None:
    stream = Gaussians(tasks=2, classes_per_task=2, train=3)
    learner = learn(make(stream, **{**TOY, "batch_size": 4}), stream)
    assert learner.buffer.filled == 12


def test_there_may_be_more_tasks_than_reference_images() -> None:
    stream = Gaussians(tasks=70, classes_per_task=2, dimensions=4, train=6, test=5)
    learner = make(stream, **{**TOY, "batch_size": 4, "epochs": 1})
    losses = torch.stack([loss for task in stream for loss in learner.learn(task)])
    assert learner.buffer.filled == 700
    assert losses.isfinite().all()


def test_a_loaded_state_goes_on_to_the_same_bits() -> None:
    whole, second = assert_goes_on(partial(make, POINTS, **TOY), POINTS)
    assert torch.equal(second.state()["memory"]["images"], whole.state()["memory"]["images"])


@pytest.mark.slow
def test_b12_a_gem_forgets_points_as_fine_tuning_does() -> None:
    assert toy_accuracy(partial(make, **TOY)) <= 0.35


@pytest.mark.parametrize("name", ["per_task", "reference"])
def test_there_must_be_something_to_ask(name: str) -> None:
    with pytest.raises(ValueError, match=rf"{name} must lie in 1 \.\. 1000000, found 0"):
        make(POINTS, **{name: 0})
