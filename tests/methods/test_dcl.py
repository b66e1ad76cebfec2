"""DCL: maps, memory, moves, and what it may and may not keep. Ids D4 .. D16 are of the specification."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
import torch

from everlearn import Canvas, Stream
from everlearn.learner import Learner, Maps, Pace, Remembers
from everlearn.memory import Exemplars
from everlearn.methods import build
from everlearn.methods.dcl import DCL, fit
from everlearn.methods.dcl.chance import draw_kept, draw_moves, draw_views, move, rehearse
from everlearn.methods.dcl.settings import Settings
from everlearn.nets.norm import Norm
from everlearn.warp import normalise

from .conftest import learn

SMALL = {"net": "convnet", "batch_size": 32, "epochs": 1}


def small_stream(**changes: Any) -> Stream:
    settings = {
        "tasks": 3,
        "classes_per_task": 4,
        "values_per_factor": 3,
        "canvas": Canvas(size=16),
    }
    return Stream(**(settings | {"split": (0.8, 0.1, 0.1)} | changes))


def learned(tasks: int = 2, stream: Stream | None = None, **changes: Any) -> DCL:
    stream = stream or small_stream()
    learner = build("dcl", stream, "cpu", **(SMALL | changes))
    assert isinstance(learner, DCL)
    return learn(learner, (stream[index] for index in range(tasks)))


def weights_of(learner: DCL) -> list[torch.Tensor]:
    return [value.clone() for value in learner.net.state_dict().values()]


def equal(left: list[torch.Tensor], right: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(left, right, strict=True))


def test_it_has_the_verbs_of_a_learner_with_a_memory_and_maps() -> None:
    learner = learned(0)
    assert isinstance(learner, Learner)
    assert isinstance(learner, Remembers)
    assert isinstance(learner, Maps)


def test_d4_the_true_map_and_the_nearest_exemplar_name_a_hundred_shapes() -> None:
    stream = Stream(tasks=10)
    memory = Exemplars(stream.canvas.shape)
    memory.add(range(100), stream.exemplars(range(100)).images)
    for task in stream:
        batch = task.test.batch(slice(None))
        found = memory.search(normalise(batch.images, batch.theta), 1)
        assert torch.equal(found.labels[:, 0], batch.labels)


@pytest.mark.slow
@pytest.mark.parametrize("fitted", [0, 3])
def test_d5_a_picture_alone_and_in_a_batch_gets_the_same_answer(fitted: int) -> None:
    stream = small_stream()
    learner = learned(2, stream, fit=fitted)
    images = stream[1].test.batch(slice(None)).images
    together = learner.match(images, learner.memory)
    for place, image in enumerate(images):
        alone = learner.match(image[None], learner.memory)
        assert torch.equal(alone.labels[0], together.labels[place])
        torch.testing.assert_close(alone.distances[0], together.distances[place], atol=1e-5, rtol=0)


def test_a_learner_that_fits_starts_from_the_map_of_its_net() -> None:
    stream = small_stream()
    learner = learned(2, stream, fit=3)
    images = stream[1].test.batch(slice(None)).images
    expected = fit.match(images, learner.theta(images), learner.memory, 2, 3)
    assert torch.equal(learner.match(images, learner.memory).distances, expected.distances)
    assert torch.equal(learner.predict(images), expected.labels[:, 0])


def test_d6_a_removed_class_is_never_named_and_comes_back_as_it_was() -> None:
    stream = small_stream()
    learner = learned(3, stream)
    images = torch.cat([task.test.batch(slice(None)).images for task in stream])
    before = learner.match(images, learner.memory, 12)
    picture = learner.memory.images([5])
    learner.memory.remove([5])
    after = learner.match(images, learner.memory, 11)
    kept = before.labels != 5
    assert torch.equal(before.labels[kept], after.labels.flatten())
    assert torch.equal(before.distances[kept], after.distances.flatten())
    assert not (learner.predict(images) == 5).any()
    learner.memory.add([5], picture)
    assert torch.equal(learner.match(images, learner.memory, 12).labels, before.labels)


def test_d7_adding_exemplars_changes_no_weight() -> None:
    stream = small_stream()
    learner = learned(1, stream)
    before = weights_of(learner)
    learner.memory.add(range(1000, 1100), stream.exemplars(range(1000, 1100)).images)
    assert equal(before, weights_of(learner))


def test_s16_deleting_a_class_forgets_it_and_it_alone_at_once() -> None:
    stream = small_stream()
    learner = learned(3, stream)
    batches = [task.test.batch(slice(None)) for task in stream]
    images, labels = torch.cat([b.images for b in batches]), torch.cat([b.labels for b in batches])
    weights, before = weights_of(learner), learner.predict(images)
    began = time.perf_counter()
    learner.memory.remove([2])
    seconds = time.perf_counter() - began
    after, gone = learner.predict(images), labels == 2
    assert not (after[gone] == 2).any()
    right_before, right_after = (before == labels)[~gone], (after == labels)[~gone]
    assert (right_after | ~right_before).all()
    assert equal(weights, weights_of(learner))
    assert seconds < 0.01


def test_d15_after_some_tasks_it_holds_one_picture_a_class_and_no_other_data() -> None:
    stream = small_stream()
    learner = learned(3, stream)
    assert learner.memory.labels == list(range(12))
    state = learner.state()
    assert set(state) == {"net", "average", "optimizer", "memory", "tasks"}
    assert state["average"] == {}
    assert state["optimizer"] == []
    assert state["memory"]["pictures"].shape == (12, 1, 16, 16)
    assert sum(p.numel() for p in state["net"].values()) == sum(
        p.numel() for p in learner.net.state_dict().values()
    )


def test_exemplars_are_those_of_the_task_under_their_own_ids() -> None:
    stream = small_stream(first_class=40)
    learner = learned(2, stream)
    shown = stream.exemplars(range(40, 48)).images
    assert torch.equal(learner.memory.images(range(40, 48)), (shown * 255).round().to(torch.uint8))


def test_a_class_that_comes_back_is_remembered_once() -> None:
    stream = small_stream(scenario="recurring")
    learner = learned(3, stream)
    assert learner.memory.labels == sorted({c for task in stream for c in task.classes})


@pytest.mark.slow
def test_d16_a_loaded_state_goes_on_to_the_same_bits() -> None:
    stream = small_stream()
    for changes in ({}, {"fresh": False}, {"average": 0.9}, {"jitter": 0.5, "rehearse": 0.5}):
        whole, first = learned(2, stream, **changes), learned(1, stream, **changes)
        second = learned(0, stream, **changes)
        second.load_state(first.state())
        learn(second, [stream[1]])
        assert equal(weights_of(whole), weights_of(second))
        images = stream[2].test.batch(slice(None)).images
        assert torch.equal(whole.theta(images), second.theta(images))
        assert second.memory.labels == whole.memory.labels


def test_learning_lowers_the_error_of_maps_on_new_shapes() -> None:
    stream = small_stream(values_per_factor=4, tasks=2)
    learner = learned(0, stream, epochs=3)
    test = stream[1].test.batch(slice(None))

    def error() -> float:
        return float((learner.theta(test.images) - test.theta).square().mean())

    before = error()
    learn(learner, [stream[0]])
    assert error() < 0.3 * before


def test_a_moved_image_and_its_moved_map_still_show_the_exemplar() -> None:
    stream = Stream(tasks=1, factors=None)
    task = stream[0]
    batch = task.train.batch(slice(0, 64))
    settings = Settings(pace=Pace(batch_size=64), jitter=1.0)
    moves = torch.from_numpy(draw_moves(settings, task))[0]
    images, maps = move(batch.images, batch.theta, moves)
    exemplars = task.exemplars().images[batch.labels]
    shown = (normalise(images, maps) - exemplars).abs().mean((1, 2, 3))
    wrong = (normalise(images, batch.theta) - exemplars).abs().mean((1, 2, 3))
    # A move may push a part of a shape out of the frame: the median image is whole.
    assert shown.median() < 0.03
    assert wrong.median() > 2 * shown.median()


def test_moves_stay_within_their_ranges_and_follow_from_the_step() -> None:
    task = small_stream()[1]
    settings = Settings(pace=Pace(batch_size=32), jitter=0.5)
    moves = draw_moves(settings, task)
    assert moves.shape[1:] == (16, 2, 3)
    scale = np.sqrt(np.linalg.det(moves[..., :2].astype(np.float64)))
    turn = np.degrees(np.arctan2(moves[..., 1, 0], moves[..., 0, 0]))
    for value, low, high in (
        (np.log(scale), -0.25, 0.25),
        (turn, -36, 36),
        (moves[..., 2], -0.15, 0.15),
    ):
        assert low - 1e-5 <= value.min() < 0.9 * low
        assert 0.9 * high < value.max() <= high + 1e-5
    assert np.array_equal(moves, draw_moves(settings, task))
    assert not np.array_equal(moves[0], moves[1])
    assert not np.array_equal(moves, draw_moves(settings, small_stream()[2]))


def test_a_rehearsed_exemplar_looks_like_the_image_that_the_stream_draws() -> None:
    stream = Stream(tasks=1)
    batch, shown = stream[0].train.batch(slice(0, 200)), stream[0].exemplars().images
    exemplars = (shown * 255).round().to(torch.uint8)[batch.labels]
    blank = torch.zeros_like(batch.images)
    images, maps = rehearse(blank, torch.zeros_like(batch.theta), exemplars, batch.theta)
    assert torch.equal(maps, batch.theta)
    right, wrong = ((images - other).abs().mean() for other in (batch.images, batch.images.flip(0)))
    assert right < 0.01
    assert wrong > 5 * right


def test_rehearsal_takes_the_last_images_of_a_batch_and_no_others() -> None:
    batch = small_stream()[0].train.batch(slice(0, 8))
    exemplars = torch.zeros((3, 1, 16, 16), dtype=torch.uint8)
    images, maps = rehearse(batch.images, batch.theta, exemplars, batch.theta[:3])
    assert torch.equal(images[:5], batch.images[:5])
    assert torch.equal(images[5:], torch.zeros(3, 1, 16, 16))
    assert torch.equal(maps, torch.cat((batch.theta[:5], batch.theta[:3])))


def test_rehearsed_views_cover_all_exemplars_scales_angles_and_places() -> None:
    task = small_stream()[1]
    settings = Settings(pace=Pace(batch_size=32, epochs=4), rehearse=0.5)
    recalled, views = draw_views(settings, task, 7)
    assert views.shape[1:] == (16, 2, 3)
    assert set(recalled.flatten().tolist()) == set(range(7))
    scale = np.sqrt(np.linalg.det(views[..., :2].astype(np.float64)))
    angle = np.arctan2(views[..., 1, 0], views[..., 0, 0])
    for value, low, high in ((scale, 0.5, 1), (angle, -np.pi, np.pi), (views[..., 2], -0.5, 0.5)):
        assert low - 1e-5 <= value.min() < low + 0.05 * (high - low)
        assert high - 0.05 * (high - low) < value.max() <= high + 1e-5


def test_a_step_leaves_out_as_many_entries_as_it_is_told() -> None:
    task = small_stream()[0]
    for masked in (0, 2, 5):
        kept = draw_kept(Settings(pace=Pace(batch_size=8), masked=masked), task)
        assert (kept.reshape(len(kept), 6).sum(1) == 6 - masked).all()
    assert len({tuple(row) for row in kept.reshape(-1, 6)}) > 3


def test_the_image_loss_compares_with_the_exemplar_of_the_class() -> None:
    stream = small_stream()
    learner = learned(1, stream, image_loss=0.5)
    task = stream[0]
    batch, shown = task.train.batch(slice(0, 9)), task.exemplars()
    (targets,) = learner._targets(batch, shown)
    for target, label in zip(targets, batch.labels.tolist(), strict=True):
        assert torch.equal(target, shown.images[task.classes.index(label)])
    assert learned(0)._targets(batch, shown) == []


def test_the_averaged_net_weighs_later_nets_more_until_it_is_as_slow_as_it_may_be() -> None:
    stream = small_stream()
    for average, weights in ((0.9, (120, 720, 2520)), (0.2, (0.2 / 7, 1.2 / 7, 0.8))):
        learner = learned(0, stream, average=average)
        after = []
        for index in range(3):
            learn(learner, [stream[index]])
            after.append(weights_of(learner))
        shares = torch.tensor(weights) / sum(weights)
        for values, slow in zip(
            zip(*after, strict=True), learner.answering.state_dict().values(), strict=True
        ):
            mean = (torch.stack(values) * shares.reshape(3, *[1] * slow.dim())).sum(0)
            torch.testing.assert_close(slow, mean, atol=1e-6, rtol=1e-5)


def test_own_moments_count_in_answers_and_not_in_learning() -> None:
    stream = small_stream()
    usual, counting = learned(2, stream), learned(2, stream, own=0.1)
    images = stream[0].test.batch(slice(None)).images
    assert equal(weights_of(usual), weights_of(counting))
    told = counting.theta(images)
    assert not torch.equal(usual.theta(images), told)
    for image, found in zip(images, told, strict=True):  # neighbours do not count
        torch.testing.assert_close(counting.theta(image[None])[0], found, atol=1e-5, rtol=0)


def test_own_moments_count_in_the_averaged_net_when_there_is_one() -> None:
    averaging = learned(1, average=0.5, own=0.1)
    owns = [[layer.own for layer in net.modules() if isinstance(layer, Norm)]
            for net in (averaging.net, averaging.answering)]  # fmt: skip
    assert set(owns[0]) == {0.0}
    assert set(owns[1]) == {0.1}


def test_an_image_is_new_when_its_nearest_is_hardly_nearer_than_the_next() -> None:
    stream = small_stream()
    learner = learned(1, stream, sigma=0.5)
    images = stream[0].test.batch(slice(None)).images
    found = learner.match(images, learner.memory)
    ratio = found.distances[:, 0] / found.distances[:, 1]
    assert torch.equal(learner.is_new(images), ratio > 0.5)
    assert torch.equal(learner.score(images), ratio)


def test_it_names_no_class_before_it_met_one_and_only_those_asked_for() -> None:
    stream = small_stream()
    images = stream[0].test.batch(slice(None)).images
    assert (learned(0, stream).predict(images) == -1).all()
    assert set(learned(2, stream).predict(images, [1, 6]).tolist()) <= {1, 6}
    assert set(learned(1, stream).predict(images, [1, 600]).tolist()) == {1}
    assert (learned(1, stream).predict(images, [600]) == -1).all()


def test_an_online_stream_takes_one_pass_only() -> None:
    stream = small_stream(online=True)
    assert learned(1, stream).tasks == 1
    with pytest.raises(ValueError, match="one pass is allowed, found epochs=2"):
        learned(0, stream, epochs=2)


def test_data_without_maps_are_refused_before_anything_is_remembered() -> None:
    stream = small_stream()
    task = stream[0]
    object.__setattr__(task.canonical, "theta", None)
    learner = learned(0, stream)
    with pytest.raises(ValueError, match="this stream has none"):
        next(learner.learn(task))
    assert len(learner.memory) == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("jitter", 1.5),
        ("rehearse", -0.1),
        ("masked", 6),
        ("sigma", -1),
        ("average", 1.0),
        ("own", 1.5),
        ("image_loss", float("nan")),
    ],
)
def test_settings_out_of_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        Settings(**{name: value})


def test_rehearsal_and_jitter_share_a_batch() -> None:
    with pytest.raises(ValueError, match="parts of one batch"):
        Settings(rehearse=0.6, jitter=0.5)


def test_an_image_loss_needs_images_that_are_not_rehearsed() -> None:
    with pytest.raises(ValueError, match="rehearse=1 leaves no image"):
        Settings(rehearse=1.0, image_loss=0.1)
