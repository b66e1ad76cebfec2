"""Experience replay: old images of the buffer beside the new ones."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from everlearn import Canvas, Stream
from everlearn.evaluation.costs import count_bytes
from everlearn.memory import Reservoir, draw_replay_rows
from everlearn.methods import build
from everlearn.stream import Gaussians

from .conftest import (
    TOY,
    assert_first_task_is_fine_tuning,
    assert_resumes,
    learn,
    same,
    same_net,
)

SMALL = TOY | {"batch_size": 16, "epochs": 2, "buffer_size": 20}
POINTS = Gaussians(tasks=3, classes_per_task=2, dimensions=8, train=40)


@pytest.mark.parametrize("separate_means", [False, True])
def test_matches_a_plain_loop(separate_means: bool) -> None:
    learner = build(
        "er", POINTS, "cpu", **SMALL, replay_batch_size=12, separate_means=separate_means
    )
    net = deepcopy(learner.trainer.net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    sampler = Reservoir(20, POINTS.seed)
    images = torch.zeros(20, 8, 1, 1)
    labels = torch.zeros(20)
    for task in POINTS:
        filled = len(sampler.used)
        rows = draw_replay_rows(POINTS.seed, task.index, filled, 10, 12)
        losses = []
        for step, batch in enumerate(task.batches(16, epochs=2)):
            parts = [(batch.images, batch.labels)]
            if filled:
                parts.append((images[rows[step]], labels[rows[step]].long()))
            if not separate_means:
                parts = [tuple(torch.cat(part) for part in zip(*parts, strict=True))]
            loss = sum(cross_entropy(net(x), y) for x, y in parts)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        items, slots = sampler.insert(task.index, task.train.labels)
        kept = task.train.batch(items)
        images[slots], labels[slots] = kept.images, kept.labels.float()
        np.testing.assert_allclose([float(one) for one in learner.learn(task)], losses, rtol=1e-5)
    for a, b in zip(learner.trainer.net.parameters(), net.parameters(), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("name", ["er", "er-balanced"])
def test_first_task_equals_fine_tuning(name: str) -> None:
    plain = {key: value for key, value in SMALL.items() if key != "buffer_size"}
    assert_first_task_is_fine_tuning(build(name, POINTS, "cpu", **SMALL), POINTS, plain)


@pytest.mark.parametrize("name", ["er", "er-balanced"])
def test_buffer_is_updated_after_the_task(name: str) -> None:
    learner = learn(build(name, POINTS, "cpu", **SMALL), [POINTS[0]])
    for _ in learner.learn(POINTS[1]):
        assert set(learner.buffer.state()["targets"].tolist()) == {0, 1}
    assert {2, 3} & set(learner.buffer.state()["targets"].tolist())


def test_replayed_images_equal_those_of_the_stream() -> None:
    stream = Stream(tasks=2, classes_per_task=2, values_per_factor=3, canvas=Canvas(size=16))
    learner = build(
        "er", stream, "cpu", net="convnet-pooled", batch_size=32, epochs=1, buffer_size=30
    )
    learn(learner, [stream[0]])
    batch = stream[0].train.batch(slice(None))
    known = {
        image.numpy().tobytes(): int(label)
        for image, label in zip(batch.images, batch.labels, strict=True)
    }
    rows = torch.from_numpy(learner.sampler.used)
    images, targets = learner.buffer.images(rows), learner.buffer.targets(rows)
    assert len({image.numpy().tobytes() for image in images}) == 30
    assert [known[image.numpy().tobytes()] for image in images] == targets.tolist()
    assert count_bytes(learner.state()["memory"]) == 30 * (16 * 16 + 8)


def test_stored_images_are_replayed_equally_often() -> None:
    learner = build("er", POINTS, "cpu", **SMALL | {"epochs": 200})
    learner.load_state(learn(build("er", POINTS, "cpu", **SMALL), [POINTS[0]]).state())
    drawn = learner.trainer.draw_replay(POINTS[1], learner.sampler.used, 16)
    assert drawn.shape == (1_000, 16)
    # 800 of each on average, with a standard deviation of 28.
    assert (torch.bincount(drawn.ravel(), minlength=20) - 800).abs().max() < 110


@pytest.mark.parametrize("name", ["er", "er-balanced"])
def test_buffer_never_exceeds_its_size(name: str) -> None:
    learner = build(name, POINTS, "cpu", **SMALL)
    for task in POINTS:
        learn(learner, [task])
        assert len(learner.sampler.used) <= learner.buffer.filled <= 20
        state = learner.state()["memory"]
        assert count_bytes(state) == learner.buffer.filled * (8 * 4 + 8)


@pytest.mark.parametrize("name", ["er", "er-balanced"])
def test_resumes_bit_for_bit(name: str) -> None:
    whole, second = assert_resumes(partial(build, name, POINTS, "cpu", **SMALL), POINTS, stop=2)
    for part in ("images", "targets"):
        assert torch.equal(whole.state()["memory"][part], second.state()["memory"][part])


def test_balanced_buffer_stays_balanced_when_classes_return() -> None:
    settings = {"net": "convnet-pooled", "batch_size": 32, "epochs": 1, "buffer_size": 30}
    stream = Stream(
        tasks=3, classes_per_task=3, values_per_factor=3, canvas=Canvas(size=16), scenario="domain"
    )
    learner = learn(build("er-balanced", stream, "cpu", **settings), stream)
    targets = learner.buffer.targets(torch.from_numpy(learner.sampler.used))
    assert torch.bincount(targets).tolist() == [10, 10, 10]


@pytest.mark.parametrize(("name", "value"), [("buffer_size", 0), ("replay_batch_size", 0)])
def test_settings_out_of_range_are_refused(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=name):
        build("er", POINTS, "cpu", **{name: value})


def averaged_after_three_tasks() -> tuple[Any, list[dict[str, torch.Tensor]]]:
    """Return a learner that averages, and its trained weights after each task."""
    learner = build("er", POINTS, "cpu", **SMALL, weight_averaging=0.9)
    after = []
    for task in POINTS:
        learn(learner, [task])
        after.append({name: w.clone() for name, w in learner.trainer.net.state_dict().items()})
    return learner, after


def test_averaged_weights_follow_the_trained_ones() -> None:
    """Steps of 1, 6 / 7 and 6 / 8: the three tasks have shares of 1, 6 and 21 in 28."""
    learner, after = averaged_after_three_tasks()
    averaged = learner.average.net.state_dict()
    for name in ("hidden.weight", "hidden.bias"):
        first, second, third = (weights[name] for weights in after)
        torch.testing.assert_close(averaged[name], (first + 6 * second + 21 * third) / 28)


def test_rows_of_new_classes_are_copied_into_the_average() -> None:
    learner, after = averaged_after_three_tasks()
    for name in ("head.weight", "head.bias"):
        averaged = learner.average.net.state_dict()[name]
        assert torch.equal(averaged[4:], after[2][name][4:])
        # Classes 2 and 3 came with the second task, and have been averaged once.
        expected = after[1][name][2:4] / 4 + 3 * after[2][name][2:4] / 4
        torch.testing.assert_close(averaged[2:4], expected)


def test_predictions_are_those_of_the_averaged_net_which_training_leaves_alone() -> None:
    learner, _ = averaged_after_three_tasks()
    plain = learn(build("er", POINTS, "cpu", **SMALL), POINTS)
    points = POINTS[1].test.batch(slice(None)).images
    expected = learner.average.net(points).argmax(1)
    assert torch.equal(learner.predict(points), expected)
    assert same_net(learner, plain)
    next(iter(learner.learn(POINTS[0])))
    assert torch.equal(learner.predict(points), expected)


def test_averaged_weights_are_part_of_the_state() -> None:
    make = partial(build, "er", POINTS, "cpu", **SMALL, weight_averaging=0.9)
    whole, resumed = assert_resumes(make, POINTS)
    states = (learner.state()["averaged_net"].values() for learner in (whole, resumed))
    assert same(*states)
