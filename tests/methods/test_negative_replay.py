"""Negative replay: replayed images move only the logits of the current classes."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from everlearn.methods import build
from everlearn.stream import Gaussians

from .conftest import TOY, assert_first_task_is_fine_tuning, assert_resumes, learn, same_net

SCHEDULE = TOY | {"batch_size": 16, "epochs": 2}
SMALL = SCHEDULE | {"buffer_size": 20}
POINTS = Gaussians(tasks=3, classes_per_task=2, dimensions=8, train=40)


def head_step(learner: Any, images: Tensor, targets: Tensor, *replayed: Tensor) -> Tensor:
    """Take one plain step of gradient descent; return how each row of the head moves."""
    learner.trainer.optimizer.param_groups[0] |= {"lr": 1.0, "momentum": 0.0}
    head = learner.trainer.net.head.weight
    before = head.detach().clone()
    learner._train_step(images, targets, *replayed)
    return head.detach() - before


@pytest.mark.parametrize("include_unseen", [True, False])
def test_replayed_images_leave_the_head_weights_of_other_classes_alone(
    include_unseen: bool,
) -> None:
    settings = SMALL | {"include_unseen": include_unseen}
    negative: Any = learn(build("negative-replay", POINTS, "cpu", **settings), [POINTS[0]])
    next(negative.learn(POINTS[1]))
    plain: Any = build("er", POINTS, "cpu", **settings)
    plain.load_state(negative.state())
    new = POINTS[1].train.batch(slice(0, 0))
    found = head_step(negative, new.images, new.labels, torch.arange(20))
    expected = head_step(plain, new.images, new.labels, torch.arange(20))
    assert not found[[0, 1, 4, 5]].any()
    assert expected[[0, 1]].any()
    torch.testing.assert_close(found[2:4], expected[2:4])


def test_new_images_are_learned_as_in_plain_replay() -> None:
    negative: Any = learn(build("negative-replay", POINTS, "cpu", **SMALL), [POINTS[0]])
    plain: Any = build("er", POINTS, "cpu", **SMALL)
    plain.load_state(negative.state())
    new = POINTS[1].train.batch(slice(0, 16))
    assert torch.equal(
        head_step(negative, new.images, new.labels), head_step(plain, new.images, new.labels)
    )


def test_current_classes_are_marked_in_place() -> None:
    learner: Any = build("negative-replay", POINTS, "cpu", **SMALL)
    address = learner.current.data_ptr()
    for task in POINTS:
        for _ in learner.learn(task):
            assert learner.current.nonzero().ravel().tolist() == list(task.classes)
    assert learner.current.data_ptr() == address


def test_first_task_equals_fine_tuning() -> None:
    learner = build("negative-replay", POINTS, "cpu", **SMALL)
    assert_first_task_is_fine_tuning(learner, POINTS, SCHEDULE)


def test_resumes_bit_for_bit() -> None:
    make = partial(build, "negative-replay", POINTS, "cpu", **SMALL)
    uninterrupted, _ = assert_resumes(make, POINTS, stop=2)
    assert not same_net(uninterrupted, learn(build("er", POINTS, "cpu", **SMALL), POINTS))


@pytest.mark.parametrize("name", ["buffer_size", "replay_batch_size"])
def test_settings_out_of_range_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        build("negative-replay", POINTS, "cpu", **{name: 0})
