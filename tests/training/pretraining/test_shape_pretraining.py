"""Pre-training on shapes: the same steps give the same weights, and features transfer to other shapes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from everlearn.core.random import Purpose
from everlearn.factors import continuous_space
from everlearn.nets.extractor import load_extractor
from everlearn.nets.precision import frozen_running_stats
from everlearn.nets.weights import digest
from everlearn.render import render
from everlearn.render.canvas import Canvas
from everlearn.shapes import outlines
from everlearn.stream import Split
from everlearn.training.pretraining.settings import ShapeSettings
from everlearn.training.pretraining.shape_pretraining import (
    FIRST_SHAPE,
    TRANSFER_SHAPES,
    ShapePretraining,
    draw_views,
)

from ...conftest import call

pytestmark = pytest.mark.integration

SMALL = ShapeSettings(
    steps=2, batch_size=8, net="convnet-pooled", shapes=5, size=16, test_images=40, warm_up=20
)
TINY = ("--net", "convnet-pooled", "--size", 16, "--shapes", 3, "--steps", 1, "--batch-size", 4)


def make(**changes: Any) -> ShapePretraining:
    return ShapePretraining(replace(SMALL, **changes), "cpu")


def trained(**changes: Any) -> ShapePretraining:
    learner = make(**changes)
    for _ in learner.learn():
        pass
    return learner


def views(steps: range, size: int = 6, seed: int = 4) -> Split:
    shapes = range(FIRST_SHAPE, FIRST_SHAPE + 5)
    return draw_views(seed, shapes, Canvas(16), Purpose.FACTORS, steps, size)


def test_the_same_steps_give_the_same_weights() -> None:
    first = trained()
    assert first.done == 2
    assert digest(first.net) == digest(trained().net)
    assert digest(first.net) != digest(trained(seed=1).net)
    assert digest(first.net) != digest(trained(weight_decay=0.5).net)
    assert digest(first.net) != digest(make().net)


def test_a_view_does_not_depend_on_how_many_are_drawn_at_once() -> None:
    many, few = views(range(4)), views(range(2, 3))
    rows = slice(2 * 6, 3 * 6)
    assert np.array_equal(many.labels[rows], few.labels)
    assert np.array_equal(many.theta[rows], few.theta)
    assert not np.array_equal(many.theta[:6], few.theta)
    assert not np.array_equal(views(range(2, 3), seed=5).theta, few.theta)


def test_a_view_shows_its_shape_with_its_factors() -> None:
    split = views(range(1))
    curves = outlines(4, FIRST_SHAPE + split.labels)
    assert np.array_equal(
        split.batch(slice(None)).images, render(curves, split.factors, Canvas(16))
    )


def test_views_cover_all_shapes_and_the_space_of_factors() -> None:
    split = views(range(40))
    assert set(split.labels.tolist()) == set(range(5))
    assert continuous_space().contains(split.factors).all()
    assert np.ptp(split.factors.orientation) > 6


def test_batches_are_the_views_of_their_steps() -> None:
    learner = make(seed=4)
    batches = learner._batches()
    images, labels, maps = (next(batches), next(batches))[1]
    split = views(range(1, 2), 8)
    assert np.array_equal(labels, split.labels)
    assert np.allclose(maps, split.theta)
    assert torch.equal(images, split.batch(slice(None)).images)


def test_the_loss_includes_maps_with_their_weight() -> None:
    learner = make(map_loss_weight=2.0)
    images, labels, maps = next(learner._batches())
    out = make(map_loss_weight=2.0).net.train()(images).detach()
    assert out.shape == (8, 5 + 6)
    map_loss = (out[:, 5:] - maps.reshape(8, 6)).square().mean()
    expected = cross_entropy(out[:, :5], labels) + 2.0 * map_loss
    assert float(next(learner.learn()).loss) == pytest.approx(float(expected), rel=1e-5)


def test_a_constant_prediction_scores_the_frequency_of_its_shape() -> None:
    learner = make()
    with torch.no_grad():
        learner.net.head.bias[3] = 1e3
    shown = learner._test_views(learner.shapes, 0).labels
    assert learner.test() == (int((shown == 3).sum()), 40)


def test_transfer_classifies_new_shapes_by_features() -> None:
    learner = make(test_images=300)
    support, queries = (learner._test_views(range(TRANSFER_SHAPES), n).labels for n in (1, 2))

    def by_label(images: torch.Tensor) -> torch.Tensor:
        """The class of each image, as a feature of one dimension."""
        labels = next(parts)
        return torch.from_numpy(labels).float()[:, None]

    learner.extractor.features = by_label
    parts = (part for labels in (support, queries) for part in np.split(labels, range(8, 300, 8)))
    correct = int(np.isin(queries, support).sum())
    assert learner.transfer() == (correct, 300)


@pytest.mark.slow
def test_it_learns_to_classify_its_shapes_and_others() -> None:
    learner = make(steps=150, batch_size=64, learning_rate=3e-3, test_images=400)
    before, losses = learner.transfer(), [float(progress.loss) for progress in learner.learn()]
    assert losses[0] == pytest.approx(np.log(5), abs=0.7)
    assert learner.test().correct > 0.35 * 400
    assert learner.transfer().correct > before.correct


def test_running_statistics_at_the_end_are_those_of_the_final_weights() -> None:
    learner = trained(batch_size=64)
    images = next(learner._batches())[0]
    with torch.no_grad(), frozen_running_stats(learner.net):
        outputs = learner.net.train()(images)
    error = (outputs - learner.net.eval()(images)).norm() / outputs.norm()
    assert error < 0.2  # without the final estimate: 0.9


@pytest.mark.gpu
def test_a_gpu_gives_the_same_weights_twice_and_classifies_in_float32() -> None:
    settings = ShapeSettings(steps=300, batch_size=256, shapes=5, test_images=1000, warm_up=20)
    first, second = (ShapePretraining(settings, "cuda") for _ in range(2))
    for learner in (first, second):
        losses = [progress.loss for progress in learner.learn()]
    assert digest(first.net) == digest(second.net)
    # Learned in bfloat16, tested in float32: a mean loss of l means exp(-l) correct, or more.
    assert first.test().correct / 1000 > float(torch.exp(-torch.stack(losses[-20:]).mean())) - 0.05


def test_the_file_describes_where_the_weights_come_from(tmp_path: Path) -> None:
    learner = trained()
    score, transfer = learner.test(), learner.transfer()
    net, about = load_extractor(learner.save(tmp_path / "net.npz", score, transfer))
    assert digest(net) == digest(learner.extractor)
    assert about["maker"] == "everlearn pretrain"
    assert about["settings"]["shapes"] == 5
    assert about["shapes"] == [10**9, 10**9 + 5]
    assert about["steps"] == 2
    assert about["test"] == score._asdict()
    assert about["transfer"] == {"shapes": 50, **transfer._asdict()}
    assert about["provenance"]["torch"] == torch.__version__


@pytest.mark.parametrize(
    "changes",
    [{"steps": 0}, {"shapes": 1}, {"map_loss_weight": -1.0}, {"weight_decay": -0.1}, {"net": "x"}],
)
def test_settings_out_of_range_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(changes))):
        replace(SMALL, **changes)


def test_the_command_writes_an_extractor_and_prints_its_accuracy(tmp_path: Path) -> None:
    out = tmp_path / "out" / "net.npz"
    result = call("pretrain", *TINY, "--out", out, "--test-images", 4, "--device", "cpu")
    assert result.code == 0, result.errors
    assert "1 steps" in result.out
    assert "50 other shapes" in result.out
    assert f"everlearn latents --weights {out}" in result.out
    assert load_extractor(out).about["size"] == 16


def test_the_command_does_not_overwrite_a_file(tmp_path: Path) -> None:
    out = tmp_path / "net.npz"
    out.write_bytes(b"precious")
    assert "is there already" in call("pretrain", *TINY, "--out", out).errors
    assert out.read_bytes() == b"precious"
    assert "must end in .npz" in call("pretrain", *TINY, "--out", tmp_path / "net.pt").errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--net", "vit-lite", "--shapes", 3), "--shapes goes with an extractor"),
        (("--net", "resnet18-slim", "--data", "."), "--data goes with --net vit-lite"),
        (("--net", "derp"), "unknown net 'derp'; known: vit-lite, mlp,"),
    ],
)
def test_options_of_another_net_are_refused(tmp_path: Path, options: Any, message: str) -> None:
    result = call("pretrain", *options, "--out", tmp_path / "net.npz")
    assert result.code == 2
    assert message in result.errors
