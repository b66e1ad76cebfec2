"""DCL: predicted maps, the memory of exemplars, random draws, and what its state holds."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
import torch

from everlearn import Canvas, Stream
from everlearn.learner import HasMemory, Learner, PredictsTheta
from everlearn.memory import Exemplars
from everlearn.methods import build
from everlearn.methods.dcl import DCL, fit
from everlearn.methods.dcl.color import build_palette, recolor
from everlearn.methods.dcl.edges import change_edges
from everlearn.methods.dcl.extra_exemplars import search_classes
from everlearn.methods.dcl.random_draws import (
    _STEPS_AT_ONCE,
    draw_edges,
    draw_hard_edges,
    draw_mask,
    draw_moves,
    draw_views,
    jitter,
    replay_exemplars,
    step_draws,
)
from everlearn.methods.dcl.settings import Settings
from everlearn.nets.layers.norm import Norm
from everlearn.render import render
from everlearn.render.affine import transform_images
from everlearn.shapes import outlines
from everlearn.training.schedule import Schedule, count_steps

from ..conftest import learn

FIRST_STEPS = range(40)

pytestmark = pytest.mark.integration

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


def test_has_the_protocols_of_learner_memory_and_theta() -> None:
    learner = learned(0)
    assert isinstance(learner, Learner)
    assert isinstance(learner, HasMemory)
    assert isinstance(learner, PredictsTheta)


def test_true_maps_and_nearest_exemplars_classify_a_hundred_shapes() -> None:
    stream = Stream(tasks=10)
    memory = Exemplars(stream.canvas.shape)
    memory.add(range(100), stream.exemplars(range(100)).images)
    for task in stream:
        batch = task.test.batch(slice(None))
        found = memory.search(transform_images(batch.images, batch.theta), 1)
        assert torch.equal(found.labels[:, 0], batch.labels)


@pytest.mark.parametrize("fitted", [0, 3])
def test_matches_do_not_depend_on_the_batch(fitted: int) -> None:
    stream = small_stream()
    learner = learned(2, stream, fit_candidates=fitted)
    images = stream[1].test.batch(slice(None)).images
    together = learner.match(images, learner.memory)
    for place, image in enumerate(images):
        alone = learner.match(image[None], learner.memory)
        assert torch.equal(alone.labels[0], together.labels[place])
        torch.testing.assert_close(alone.distances[0], together.distances[place], atol=1e-5, rtol=0)


def test_fitting_starts_from_the_predicted_map() -> None:
    stream = small_stream()
    learner = learned(2, stream, fit_candidates=3)
    images = stream[1].test.batch(slice(None)).images
    expected = fit.match(images, learner.theta(images), learner.memory, 2, 3)
    assert torch.equal(learner.match(images, learner.memory).distances, expected.distances)
    assert torch.equal(learner.predict(images), expected.labels[:, 0])


def test_a_removed_class_is_never_predicted_until_it_is_added_again() -> None:
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


def test_adding_exemplars_changes_no_weight() -> None:
    stream = small_stream()
    learner = learned(1, stream)
    before = weights_of(learner)
    learner.memory.add(range(1000, 1100), stream.exemplars(range(1000, 1100)).images)
    assert equal(before, weights_of(learner))


def test_removing_a_class_unlearns_it_alone() -> None:
    stream = small_stream()
    learner = learned(3, stream)
    batches = [task.test.batch(slice(None)) for task in stream]
    images, labels = torch.cat([b.images for b in batches]), torch.cat([b.labels for b in batches])
    weights, before = weights_of(learner), learner.predict(images)
    began = time.perf_counter()
    learner.memory.remove([2])
    seconds = time.perf_counter() - began
    after = learner.predict(images)
    gone = labels == 2
    assert not (after[gone] == 2).any()
    correct_before = (before == labels)[~gone]
    correct_after = (after == labels)[~gone]
    assert (correct_after | ~correct_before).all()
    assert equal(weights, weights_of(learner))
    assert seconds < 0.01


def test_state_holds_one_exemplar_per_class_and_no_other_data() -> None:
    stream = small_stream()
    learner = learned(3, stream)
    assert learner.memory.labels == list(range(12))
    state = learner.state()
    assert set(state) == {
        "net",
        "averaged_net",
        "optimizer",
        "memory",
        "extra_exemplars",
        "tasks",
    }
    assert state["averaged_net"] == state["extra_exemplars"] == {}
    assert state["optimizer"] == []
    assert state["memory"]["pictures"].shape == (12, 1, 16, 16)
    assert sum(p.numel() for p in state["net"].values()) == sum(
        p.numel() for p in learner.net.state_dict().values()
    )


def test_exemplars_are_stored_under_their_class_ids() -> None:
    stream = small_stream(first_class=40)
    learner = learned(2, stream)
    shown = stream.exemplars(range(40, 48)).images
    assert torch.equal(learner.memory.images(range(40, 48)), (shown * 255).round().to(torch.uint8))


def test_a_returning_class_is_stored_once() -> None:
    stream = small_stream(scenario="recurring")
    learner = learned(3, stream)
    assert learner.memory.labels == sorted({c for task in stream for c in task.classes})


def test_resumes_bit_for_bit() -> None:
    stream = small_stream()
    for changes in (
        {},
        {"reset_optimizer": False},
        {"weight_averaging": 0.9},
        {"exemplars_per_class": 3},
        {"jitter": 0.5, "exemplar_replay": 0.5, "edge_jitter": 0.5},
    ):
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


def test_a_jittered_image_and_its_map_still_give_the_exemplar() -> None:
    stream = Stream(tasks=1, factors=None)
    task = stream[0]
    batch = task.train.batch(slice(0, 64))
    settings = Settings(schedule=Schedule(batch_size=64), jitter=1.0)
    moves = torch.from_numpy(draw_moves(settings, task, FIRST_STEPS))[0]
    images, maps = jitter(batch.images, batch.theta, moves)
    exemplars = task.exemplars().images[batch.labels]
    shown = (transform_images(images, maps) - exemplars).abs().mean((1, 2, 3))
    wrong = (transform_images(images, batch.theta) - exemplars).abs().mean((1, 2, 3))
    # A move may push a part of a shape out of the frame: the median image is whole.
    assert shown.median() < 0.03
    assert wrong.median() > 2 * shown.median()


def test_jitter_stays_within_its_ranges_and_is_reproducible() -> None:
    task = small_stream()[1]
    settings = Settings(schedule=Schedule(batch_size=32), jitter=0.5)
    moves = draw_moves(settings, task, FIRST_STEPS)
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
    assert np.array_equal(moves, draw_moves(settings, task, FIRST_STEPS))
    assert not np.array_equal(moves[0], moves[1])
    assert not np.array_equal(moves, draw_moves(settings, small_stream()[2], FIRST_STEPS))


def test_draws_do_not_depend_on_how_many_steps_are_drawn_at_once() -> None:
    task = small_stream()[1]
    settings = Settings(
        schedule=Schedule(batch_size=8, epochs=3), jitter=0.5, exemplar_replay=0.25, edge_jitter=0.5
    )
    steps = count_steps(task, settings.schedule)
    assert steps > 2 * _STEPS_AT_ONCE
    views = draw_views(settings, task, 5, range(steps))
    others = [draw(settings, task, range(steps)) for draw in (draw_moves, draw_edges, draw_mask)]
    found = list(step_draws(settings, task, 5, "cpu"))
    assert len(found) == steps
    for parts, expected in zip(zip(*found, strict=True), (*views, *others), strict=True):
        assert np.array_equal(torch.stack(parts).numpy(), expected)


def test_edge_jitter_changes_its_fraction_of_the_images() -> None:
    stream = small_stream()
    settings = Settings(schedule=Schedule(batch_size=32, epochs=10), edge_jitter=0.4)
    edges = draw_edges(settings, stream[1], FIRST_STEPS)
    threshold, amount = edges[..., 0], edges[..., 1]
    assert edges.shape[1:] == (32, 2)
    assert not ((threshold > 0) & (amount > 0)).any()
    assert abs((threshold > 0).mean() - 0.2) < 0.05
    assert abs((amount > 0).mean() - 0.2) < 0.05
    assert 0.25 <= threshold[threshold > 0].min() < threshold.max() <= 0.75
    assert np.array_equal(edges, draw_edges(settings, stream[1], FIRST_STEPS))
    images = stream[1].train.batch(slice(0, 32)).images
    changed = change_edges(images, torch.from_numpy(edges[0]))
    same = (changed == images).flatten(1).all(1).numpy()
    assert np.array_equal(same, (edges[0] == 0).all(1))
    off = draw_edges(Settings(schedule=Schedule(batch_size=32)), stream[1], FIRST_STEPS)
    assert change_edges(images, torch.from_numpy(off[0])) is images


def test_hard_edge_jitter_shrinks_its_fraction_and_hardens_replayed_exemplars() -> None:
    task = small_stream()[1]
    settings = Settings(
        schedule=Schedule(batch_size=32, epochs=10), exemplar_replay=0.25, hard_edge_jitter=0.4
    )
    _, views = draw_views(settings, task, 5, FIRST_STEPS)
    edges = draw_hard_edges(settings, task, FIRST_STEPS, views)
    threshold, amount = edges[..., 0], edges[..., 1]
    assert not threshold[:, :24].any()
    scale = np.hypot(views[..., 0, 0], views[..., 1, 0])
    missing = (1 - scale) / 2  # pixels, of a ramp that is `scale` pixels wide
    np.testing.assert_allclose(
        threshold[:, 24:], np.maximum(0.5 - missing / scale, 0.01), atol=1e-5
    )
    assert abs((amount > 0).mean() - 0.4) < 0.05
    assert 0.95 < amount.max() < 1
    (first, *_) = step_draws(settings, task, 5, "cpu")
    assert np.array_equal(first.edges.numpy(), edges[0])


def test_hard_edge_jitter_needs_hard_edges() -> None:
    message = "needs sprites with hard edges, found Canvas.*leave hard_edge_jitter at 0"
    with pytest.raises(ValueError, match=message):
        build("dcl-plus", small_stream(), "cpu", hard_edge_jitter=0.25)


def test_hard_edge_jitter_trains_on_changed_images() -> None:
    stream = small_stream(canvas=Canvas(size=16, parity=True))
    learners = [build("dcl-plus", stream, "cpu", **SMALL, hard_edge_jitter=f) for f in (0.0, 0.5)]
    plain, jittered = ([float(loss) for loss in learner.learn(stream[0])] for learner in learners)
    assert plain != jittered
    assert np.isfinite(jittered).all()


def test_a_replayed_exemplar_equals_the_image_of_the_stream() -> None:
    stream = Stream(tasks=1)
    batch, shown = stream[0].train.batch(slice(0, 200)), stream[0].exemplars().images
    exemplars = (shown * 255).round().to(torch.uint8)[batch.labels]
    blank = torch.zeros_like(batch.images)
    images, maps = replay_exemplars(blank, torch.zeros_like(batch.theta), exemplars, batch.theta)
    assert torch.equal(maps, batch.theta)
    right, wrong = ((images - other).abs().mean() for other in (batch.images, batch.images.flip(0)))
    assert right < 0.01
    assert wrong > 5 * right


def test_exemplar_replay_replaces_the_last_images_of_a_batch() -> None:
    batch = small_stream()[0].train.batch(slice(0, 8))
    exemplars = torch.zeros((3, 1, 16, 16), dtype=torch.uint8)
    images, maps = replay_exemplars(batch.images, batch.theta, exemplars, batch.theta[:3])
    assert torch.equal(images[:5], batch.images[:5])
    assert torch.equal(images[5:], torch.zeros(3, 1, 16, 16))
    assert torch.equal(maps, torch.cat((batch.theta[:5], batch.theta[:3])))


def test_replayed_views_cover_all_exemplars_scales_angles_and_positions() -> None:
    task = small_stream()[1]
    settings = Settings(schedule=Schedule(batch_size=32, epochs=4), exemplar_replay=0.5)
    recalled, views = draw_views(settings, task, 7, FIRST_STEPS)
    assert views.shape[1:] == (16, 2, 3)
    assert set(recalled.flatten().tolist()) == set(range(7))
    scale = np.sqrt(np.linalg.det(views[..., :2].astype(np.float64)))
    angle = np.arctan2(views[..., 1, 0], views[..., 0, 0])
    for value, low, high in ((scale, 0.5, 1), (angle, -np.pi, np.pi), (views[..., 2], -0.5, 0.5)):
        assert low - 1e-5 <= value.min() < low + 0.05 * (high - low)
        assert high - 0.05 * (high - low) < value.max() <= high + 1e-5


def test_masks_leave_out_the_requested_number_of_entries() -> None:
    task = small_stream()[0]
    for masked in (0, 2, 5):
        kept = draw_mask(
            Settings(schedule=Schedule(batch_size=8), masked_entries=masked), task, FIRST_STEPS
        )
        assert (kept.reshape(len(kept), 6).sum(1) == 6 - masked).all()
    assert len({tuple(row) for row in kept.reshape(-1, 6)}) > 3


def test_image_loss_compares_with_the_exemplar_of_the_class() -> None:
    stream = small_stream()
    learner = learned(1, stream, image_loss_weight=0.5)
    task = stream[0]
    batch, shown = task.train.batch(slice(0, 9)), task.exemplars()
    (targets,) = learner._image_targets(batch, shown)
    for target, label in zip(targets, batch.labels.tolist(), strict=True):
        assert torch.equal(target, shown.images[task.classes.index(label)])
    assert learned(0)._image_targets(batch, shown) == []


def test_the_loss_is_the_weighted_sum_of_map_and_image_loss() -> None:
    stream = small_stream()
    losses = []
    for weights in ((1.0, 0.0), (0.0, 1.0), (2.0, 3.0)):
        learner = learned(0, stream, map_loss_weight=weights[0], image_loss_weight=weights[1])
        losses.append(float(next(learner.learn(stream[0]))))
    assert losses[2] == pytest.approx(2 * losses[0] + 3 * losses[1], rel=1e-5)


def test_recolored_images_are_those_of_the_first_colour() -> None:
    stream = small_stream(canvas=Canvas(channels=3, colors=("white", "red", "#00ff80", "orange")))
    white = stream.with_changes(canvas=Canvas(channels=3))
    palette = build_palette(stream.canvas, "cpu")
    batch = stream[0].test.batch(slice(None))
    colors = palette.shapes[batch.factors.color.long()]
    factors = batch.factors._replace(color=torch.zeros_like(batch.factors.color))
    which = np.array([stream[0].classes.index(label) for label in batch.labels.tolist()])
    expected = render(
        outlines(stream.seed, np.array(stream[0].classes)),
        type(factors)(*(column.numpy() for column in factors)),
        white.canvas,
        which=which,
    )
    found = recolor(batch.images, colors, palette)
    error = (found - torch.as_tensor(expected)).abs()
    assert (batch.images - torch.as_tensor(expected)).abs().mean() > 10 * error.mean()
    assert error.mean() < 0.002


def test_colours_are_regressed_beside_maps() -> None:
    stream = small_stream(canvas=Canvas(size=16, channels=3, colors=("white", "red", "blue")))
    learner = learned(2, stream, regress_color=True, epochs=4)
    batch = stream[1].test.batch(slice(None))
    targets = learner._color_targets(batch, 0)
    assert learner.theta(batch.images).shape == (len(batch.images), 2, 3)
    error = (learner._regress(batch.images)[:, 6:] - targets).square().mean()
    assert error < 0.3 * (targets - targets.mean(0)).square().mean()
    assert torch.equal(learner._color_targets(batch, 2)[-2:], torch.ones(2, 3))


def test_colours_need_three_channels() -> None:
    with pytest.raises(ValueError, match="regress_color needs sprites with 3 channels"):
        learned(0, regress_color=True)


def test_extra_exemplars_are_training_images_in_canonical_pose() -> None:
    stream = Stream(tasks=1)
    learner = build("dcl", stream, "cpu", net="convnet", exemplars_per_class=4)
    learner._store(stream[0], stream[0].exemplars())
    assert learner.extra_exemplars.labels == [64 * c + j for c in range(10) for j in range(3)]
    extra = learner.extra_exemplars.images().float().reshape(10, 3, -1) / 255
    canonical = learner.memory.images().float().reshape(10, 1, -1) / 255
    own = (extra - canonical).abs().mean((1, 2))
    other = (extra - canonical.roll(1, 0)).abs().mean((1, 2))
    assert (own < 0.03).all()
    assert (own < other).all()


def test_a_class_is_as_near_as_its_nearest_exemplar() -> None:
    rng = torch.Generator().manual_seed(0)
    memory = Exemplars((1, 4, 4))
    extra = memory.empty()
    memory.add(range(5), torch.rand(5, 1, 4, 4, generator=rng))
    labels = [64 * c + j for c in range(5) for j in range(3)]
    extra.add(labels, torch.rand(15, 1, 4, 4, generator=rng))
    queries = torch.rand(20, 1, 4, 4, generator=rng)
    memory.remove([3])
    found = search_classes(memory, extra, 3, queries, 4)
    for query, row, distances in zip(queries, *found, strict=True):
        nearest = {}
        for c in (0, 1, 2, 4):
            images = [memory.images([c]), extra.images([64 * c + j for j in range(3)])]
            stored = torch.cat(images).float() / 255
            nearest[c] = float((stored - query).square().mean((1, 2, 3)).min())
        order = sorted(nearest, key=nearest.__getitem__)
        assert row.tolist() == order
        assert distances.tolist() == pytest.approx([nearest[c] for c in order], rel=1e-5)


def test_weight_averaging_decays_polynomially_up_to_its_bound() -> None:
    stream = small_stream()
    for average, weights in ((0.9, (120, 720, 2520)), (0.2, (0.2 / 7, 1.2 / 7, 0.8))):
        learner = learned(0, stream, weight_averaging=average)
        after = []
        for index in range(3):
            learn(learner, [stream[index]])
            after.append(weights_of(learner))
        shares = torch.tensor(weights) / sum(weights)
        for values, slow in zip(
            zip(*after, strict=True), learner.averaged_net.state_dict().values(), strict=True
        ):
            mean = (torch.stack(values) * shares.reshape(3, *[1] * slow.dim())).sum(0)
            torch.testing.assert_close(slow, mean, atol=1e-6, rtol=1e-5)


def test_instance_statistics_affect_predictions_but_not_training() -> None:
    stream = small_stream()
    usual, counting = learned(2, stream), learned(2, stream, instance_stats=0.1)
    images = stream[0].test.batch(slice(None)).images
    assert equal(weights_of(usual), weights_of(counting))
    predicted = counting.theta(images)
    assert not torch.equal(usual.theta(images), predicted)
    for image, found in zip(images, predicted, strict=True):  # other images do not matter
        torch.testing.assert_close(counting.theta(image[None])[0], found, atol=1e-5, rtol=0)


def test_instance_statistics_apply_to_the_averaged_net() -> None:
    averaging = learned(1, weight_averaging=0.5, instance_stats=0.1)
    owns = [[layer.instance_weight for layer in net.modules() if isinstance(layer, Norm)]
            for net in (averaging.net, averaging.averaged_net)]  # fmt: skip
    assert set(owns[0]) == {0.0}
    assert set(owns[1]) == {0.1}


def test_novelty_is_the_ratio_of_the_two_nearest_distances() -> None:
    stream = small_stream()
    learner = learned(1, stream, sigma=0.5)
    images = stream[0].test.batch(slice(None)).images
    found = learner.match(images, learner.memory)
    ratio = found.distances[:, 0] / found.distances[:, 1]
    assert torch.equal(learner.is_new(images), ratio > 0.5)
    assert torch.equal(learner.novelty(images), ratio)


def test_predictions_are_seen_classes_among_those_given() -> None:
    stream = small_stream()
    images = stream[0].test.batch(slice(None)).images
    assert (learned(0, stream).predict(images) == -1).all()
    assert set(learned(2, stream).predict(images, [1, 6]).tolist()) <= {1, 6}
    assert set(learned(1, stream).predict(images, [1, 600]).tolist()) == {1}
    assert (learned(1, stream).predict(images, [600]) == -1).all()


def test_an_online_stream_allows_one_epoch() -> None:
    stream = small_stream(online=True)
    assert learned(1, stream).average.tasks == 1
    with pytest.raises(ValueError, match="one pass is allowed, found epochs=2"):
        learned(0, stream, epochs=2)


def test_data_without_maps_are_refused_before_anything_is_stored() -> None:
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
        ("edge_jitter", 1.5),
        ("exemplar_replay", -0.1),
        ("masked_entries", 6),
        ("exemplars_per_class", 0),
        ("map_loss_weight", -1),
        ("sigma", -1),
        ("weight_averaging", 1.0),
        ("instance_stats", 1.5),
        ("image_loss_weight", float("nan")),
    ],
)
def test_settings_out_of_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        Settings(**{name: value})


def test_exemplar_replay_and_jitter_must_fit_into_a_batch() -> None:
    with pytest.raises(ValueError, match="fractions of one batch"):
        Settings(exemplar_replay=0.6, jitter=0.5)


def test_an_image_loss_needs_images_besides_replayed_exemplars() -> None:
    with pytest.raises(ValueError, match="exemplar_replay=1 leaves no image"):
        Settings(exemplar_replay=1.0, image_loss_weight=0.1)


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"map_loss_weight": 0}, "both 0"),
        ({"image_loss_weight": 1, "regress_color": True}, "in their own colour"),
        ({"exemplars_per_class": 2, "fit_candidates": 3}, "canonical exemplars only"),
    ],
)
def test_settings_that_exclude_each_other_are_refused(changes: dict[str, Any], found: str) -> None:
    with pytest.raises(ValueError, match=found):
        Settings(**changes)
