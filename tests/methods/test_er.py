"""Experience replay: old images of the buffer beside the new ones."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from everlearn import Canvas, Stream
from everlearn.exam.costs import count_bytes
from everlearn.memory import Reservoir, draw_rows
from everlearn.methods import build
from everlearn.stream import Gaussians

from .conftest import TOY, assert_goes_on, assert_plain_first, learn, same_net

SMALL = TOY | {"batch_size": 16, "epochs": 2, "memory": 20}
POINTS = Gaussians(tasks=3, classes_per_task=2, dimensions=8, train=40)


@pytest.mark.parametrize("apart", [False, True])
def test_it_is_a_plain_loop_over_new_and_old_images(apart: bool) -> None:
    learner = build("er", POINTS, "cpu", **SMALL, recalled=12, apart=apart)
    net = deepcopy(learner.student.net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    choice, images, labels = Reservoir(20, POINTS.seed), torch.zeros(20, 8, 1, 1), torch.zeros(20)
    for task in POINTS:
        filled = len(choice.used)
        rows = draw_rows(POINTS.seed, task.index, filled, 10, 12)
        losses = []
        for step, batch in enumerate(task.batches(16, epochs=2)):
            parts = [(batch.images, batch.labels)]
            if filled:
                parts.append((images[rows[step]], labels[rows[step]].long()))
            if not apart:
                parts = [tuple(torch.cat(part) for part in zip(*parts, strict=True))]
            loss = sum(cross_entropy(net(x), y) for x, y in parts)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        items, slots = choice.admit(task.index, task.train.labels)
        kept = task.train.batch(items)
        images[slots], labels[slots] = kept.images, kept.labels.float()
        np.testing.assert_allclose([float(one) for one in learner.learn(task)], losses, rtol=1e-5)
    for a, b in zip(learner.student.net.parameters(), net.parameters(), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("name", ["er", "er-balanced"])
def test_b14_the_first_task_is_learned_as_fine_tuning_learns_it(name: str) -> None:
    plain = {key: value for key, value in SMALL.items() if key != "memory"}
    assert_plain_first(build(name, POINTS, "cpu", **SMALL), POINTS, plain)


@pytest.mark.parametrize("name", ["er", "er-balanced"])
def test_a_task_enters_the_buffer_when_it_has_been_learned(name: str) -> None:
    learner = learn(build(name, POINTS, "cpu", **SMALL), [POINTS[0]])
    for _ in learner.learn(POINTS[1]):
        assert set(learner.buffer.state()["units"].tolist()) == {0, 1}
    assert {2, 3} & set(learner.buffer.state()["units"].tolist())


def test_the_images_recalled_are_those_of_the_stream_to_the_same_bits() -> None:
    stream = Stream(tasks=2, classes_per_task=2, values_per_factor=3, canvas=Canvas(size=16))
    learner = build("er", stream, "cpu", net="convnet-pooled", batch_size=32, epochs=1, memory=30)
    learn(learner, [stream[0]])
    batch = stream[0].train.batch(slice(None))
    known = {
        image.numpy().tobytes(): int(label)
        for image, label in zip(batch.images, batch.labels, strict=True)
    }
    rows = torch.from_numpy(learner.choice.used)
    images, units = learner.buffer.images(rows), learner.buffer.units(rows)
    assert len({image.numpy().tobytes() for image in images}) == 30
    assert [known[image.numpy().tobytes()] for image in images] == units.tolist()
    assert count_bytes(learner.state()["memory"]) == 30 * (16 * 16 + 8)


def test_each_image_kept_is_recalled_equally_often() -> None:
    learner = build("er", POINTS, "cpu", **SMALL | {"epochs": 200})
    learner.load_state(learn(build("er", POINTS, "cpu", **SMALL), [POINTS[0]]).state())
    drawn = learner.student.draw(POINTS[1], learner.choice.used, 16)
    assert drawn.shape == (1_000, 16)
    # 800 of each on average, with a standard deviation of 28.
    assert (torch.bincount(drawn.ravel(), minlength=20) - 800).abs().max() < 110


@pytest.mark.parametrize("name", ["er", "er-balanced"])
def test_b18_the_buffer_never_holds_more_than_its_memory(name: str) -> None:
    learner = build(name, POINTS, "cpu", **SMALL)
    for task in POINTS:
        learn(learner, [task])
        assert len(learner.choice.used) <= learner.buffer.filled <= 20
        state = learner.state()["memory"]
        assert count_bytes(state) == learner.buffer.filled * (8 * 4 + 8)


@pytest.mark.parametrize("name", ["er", "er-balanced"])
def test_a_loaded_state_goes_on_to_the_same_bits(name: str) -> None:
    whole, second = assert_goes_on(partial(build, name, POINTS, "cpu", **SMALL), POINTS, stop=2)
    for part in ("images", "units"):
        assert torch.equal(whole.state()["memory"][part], second.state()["memory"][part])


def test_classes_that_come_back_are_kept_in_balance() -> None:
    settings = {"net": "convnet-pooled", "batch_size": 32, "epochs": 1, "memory": 30}
    stream = Stream(
        tasks=3, classes_per_task=3, values_per_factor=3, canvas=Canvas(size=16), scenario="domain"
    )
    learner = learn(build("er-balanced", stream, "cpu", **settings), stream)
    units = learner.buffer.units(torch.from_numpy(learner.choice.used))
    assert torch.bincount(units).tolist() == [10, 10, 10]


def head_slope(learner: Any, images: Tensor, units: Tensor, new: int) -> Tensor:
    """The gradient of the head, a row a class, from a batch whose first images are new."""
    loss = learner._loss(learner.student.logits(images), units, new)
    return torch.autograd.grad(loss, learner.student.net.head.weight)[0]


@pytest.mark.parametrize("unmet", [True, False])
def test_n4_in_negative_replay_old_images_leave_the_heads_rows_of_old_classes_alone(
    unmet: bool,
) -> None:
    learner = build("er", POINTS, "cpu", **SMALL | {"unmet": unmet}, negative=True)
    learn(learner, [POINTS[0]])
    next(learner.learn(POINTS[1]))
    rows = torch.arange(20)
    old, units = learner.buffer.images(rows), learner.buffer.units(rows)
    found = head_slope(learner, old, units, new=0)
    assert not found[[0, 1, 4, 5]].any()
    plain = build("er", POINTS, "cpu", **SMALL | {"unmet": unmet})
    plain.load_state(learner.state())
    torch.testing.assert_close(found[2:4], head_slope(plain, old, units, new=0)[2:4])
    new = POINTS[1].train.batch(slice(0, 16))
    assert torch.equal(
        head_slope(learner, new.images, new.labels, 16),
        head_slope(plain, new.images, new.labels, 16),
    )


def test_in_negative_replay_the_classes_of_the_task_are_named_in_the_same_memory() -> None:
    learner = build("er", POINTS, "cpu", **SMALL, negative=True)
    place = learner.current.data_ptr()
    for task in POINTS:
        for _ in learner.learn(task):
            assert learner.current.nonzero().ravel().tolist() == list(task.classes)
    assert learner.current.data_ptr() == place


def test_negative_replay_goes_on_from_a_state_and_begins_as_fine_tuning() -> None:
    make = partial(build, "er", POINTS, "cpu", **SMALL, negative=True)
    whole, _ = assert_goes_on(make, POINTS, stop=2)
    plain = {key: value for key, value in SMALL.items() if key != "memory"}
    assert_plain_first(make(), POINTS, plain)
    assert not same_net(whole, learn(build("er", POINTS, "cpu", **SMALL), POINTS))


def test_negative_replay_with_two_means_is_refused() -> None:
    with pytest.raises(ValueError, match="apart=True; leave one of them out"):
        build("er", POINTS, "cpu", negative=True, apart=True)


@pytest.mark.parametrize(("name", "value"), [("memory", 0), ("recalled", 0)])
def test_settings_out_of_range_are_refused(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=name):
        build("er", POINTS, "cpu", **{name: value})
