"""GDumb: a new net that learns from the memory alone."""

from __future__ import annotations

import math
from copy import deepcopy
from functools import partial
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy

from everlearn.core.random import Purpose, permutation
from everlearn.core.settings import change_settings
from everlearn.evaluation.costs import count_bytes
from everlearn.methods.gdumb import GDumb, Settings
from everlearn.stream import Gaussians

from .conftest import assert_resumes, learn, same_net, toy_accuracy

SMALL = {"net": "mlp", "batch_size": 8, "epochs": 3, "buffer_size": 20, "include_unseen": True}
POINTS = Gaussians(tasks=3, classes_per_task=2, dimensions=8, train=40)


def make(stream: Gaussians = POINTS, **changes: Any) -> GDumb:
    return GDumb(stream, change_settings(Settings(), SMALL | changes, "gdumb"), "cpu")


def test_matches_a_plain_loop() -> None:
    learner = make()
    net = deepcopy(learner.trainer.net)
    learn(learner, POINTS)
    images, targets = (learner.state()["memory"][part] for part in ("images", "targets"))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for step in range(6):
        order = permutation(POINTS.seed, Purpose.RECALL, 2, 20, substream=step // 2)
        rows = order[:16].reshape(2, 8)[step % 2]
        optimizer.param_groups[0]["lr"] = (
            5e-4 + (0.05 - 5e-4) * (1 + math.cos(step * math.pi / 5)) / 2
        )
        optimizer.zero_grad()
        cross_entropy(net(images[rows]), targets[rows]).backward()
        optimizer.step()
    for a, b in zip(learner.trainer.net.parameters(), net.parameters(), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("reset_optimizer", [False, True])
def test_training_starts_from_random_weights(reset_optimizer: bool) -> None:
    often, once = (
        learn(make(reset_optimizer=reset_optimizer, retrain_every=every), POINTS)
        for every in (1, 3)
    )
    assert same_net(often, once)


def test_retrains_every_n_tasks_and_after_the_last() -> None:
    learner = make(retrain_every=2)
    assert [sum(1 for _ in learner.learn(task)) for task in POINTS] == [0, 6, 6]


def test_buffer_is_balanced_and_holds_images_of_the_tasks() -> None:
    learner = make()
    for task, share in zip(POINTS, (10, 5, 3), strict=True):
        learn(learner, [task])
        images, targets = (learner.state()["memory"][part] for part in ("images", "targets"))
        counts = torch.bincount(targets)
        assert counts.sum() == 20
        assert counts.min() >= share
        known = {row.numpy().tobytes() for row in task.train.batch(slice(None)).images}
        new = [row.numpy().tobytes() in known for row in images]
        assert new == [unit in task.classes for unit in targets.tolist()]
        assert count_bytes(learner.state()["memory"]) == 20 * (8 * 4 + 8)


def test_buffer_takes_images_in_training_order() -> None:
    learner, task = learn(make(buffer_size=2), [POINTS[0]]), POINTS[0]
    order = task.order()
    first = [order[task.train.labels[order] == label][0] for label in (0, 1)]
    targets = learner.buffer.targets(torch.arange(2))
    expected = task.train.batch(first).images[targets]
    assert torch.equal(learner.buffer.images(torch.arange(2)), expected)


def test_a_buffer_smaller_than_a_batch_is_one_batch() -> None:
    learner = make(buffer_size=5)
    assert sum(1 for _ in learner.learn(POINTS[0])) == 3
    assert learner.batch_size == 5


def test_resumes_bit_for_bit() -> None:
    for every in (1, 2):
        whole, second = assert_resumes(partial(make, retrain_every=every), [POINTS[0], POINTS[1]])
        assert same_net(learn(second, [POINTS[2]]), learn(whole, [POINTS[2]]))


def test_an_online_stream_allows_several_epochs_over_the_buffer() -> None:
    online = POINTS.with_changes(online=True)
    assert sum(1 for _ in make(online).learn(online[0])) == 6


def test_predictions_are_seen_classes() -> None:
    learner, images = make(), POINTS[0].test.batch(slice(None)).images
    assert (learner.predict(images) == -1).all()
    learn(learner, [POINTS[0], POINTS[1]])
    assert set(learner.predict(images).tolist()) <= {0, 1, 2, 3}
    assert set(learner.predict(images, [0, 3]).tolist()) <= {0, 3}


@pytest.mark.parametrize("name", ["buffer_size", "retrain_every"])
def test_settings_out_of_range_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        make(**{name: 0})


def test_remembers_the_toy_stream() -> None:
    assert toy_accuracy(partial(make, buffer_size=200, epochs=20, retrain_every=5)) > 0.9
