"""Pre-training on shapes: the same steps give the same weights, and features tell other shapes apart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from everlearn.factors import continuous_space
from everlearn.nets import fast
from everlearn.nets.extractor import load_halves
from everlearn.nets.weights import digest
from everlearn.philox import Purpose
from everlearn.pretraining.settings import ShapeSettings
from everlearn.pretraining.shapes import FIRST_SHAPE, OTHERS, ShapePretraining, draw_views
from everlearn.render import render
from everlearn.render.canvas import Canvas
from everlearn.shapes import outlines
from everlearn.stream import Split

from .conftest import call

pytestmark = pytest.mark.slow

SMALL = ShapeSettings(
    steps=2, batch_size=8, net="convnet-pooled", shapes=5, size=16, test_images=40, warm_up=20
)
TINY = ("--net", "convnet-pooled", "--size", 16, "--shapes", 3, "--steps", 1, "--batch-size", 4)


def work(**changes: Any) -> ShapePretraining:
    return ShapePretraining(replace(SMALL, **changes), "cpu")


def done(**changes: Any) -> ShapePretraining:
    learner = work(**changes)
    for _ in learner.learn():
        pass
    return learner


def views(steps: range, size: int = 6, seed: int = 4) -> Split:
    shapes = range(FIRST_SHAPE, FIRST_SHAPE + 5)
    return draw_views(seed, shapes, Canvas(16), Purpose.FACTORS, steps, size)


def test_the_same_steps_give_the_same_weights() -> None:
    first = done()
    assert first.done == 2
    assert digest(first.net) == digest(done().net)
    assert digest(first.net) != digest(done(seed=1).net)
    assert digest(first.net) != digest(done(decay=0.5).net)
    assert digest(first.net) != digest(work().net)


def test_a_view_does_not_depend_on_how_many_are_drawn_at_once() -> None:
    many, few = views(range(4)), views(range(2, 3))
    rows = slice(2 * 6, 3 * 6)
    assert np.array_equal(many.labels[rows], few.labels)
    assert np.array_equal(many.theta[rows], few.theta)
    assert not np.array_equal(many.theta[:6], few.theta)
    assert not np.array_equal(views(range(2, 3), seed=5).theta, few.theta)


def test_a_view_shows_its_shape_in_its_factors() -> None:
    split = views(range(1))
    curves = outlines(4, FIRST_SHAPE + split.labels)
    assert np.array_equal(
        split.batch(slice(None)).images, render(curves, split.factors, Canvas(16))
    )


def test_views_are_of_all_shapes_and_of_the_whole_space() -> None:
    split = views(range(40))
    assert set(split.labels.tolist()) == set(range(5))
    assert continuous_space().contains(split.factors).all()
    assert np.ptp(split.factors.orientation) > 6


def test_batches_are_the_views_of_their_steps() -> None:
    learner = work(seed=4)
    batches = learner._batches()
    images, labels, maps = (next(batches), next(batches))[1]
    split = views(range(1, 2), 8)
    assert np.array_equal(labels, split.labels)
    assert np.allclose(maps, split.theta)
    assert torch.equal(images, split.batch(slice(None)).images)


def test_maps_are_learned_beside_the_names_when_they_count() -> None:
    learner = work(maps=2.0)
    images, labels, maps = next(learner._batches())
    told = work(maps=2.0).net.train()(images).detach()
    assert told.shape == (8, 5 + 6)
    off = (told[:, 5:] - maps.reshape(8, 6)).square().mean()
    expected = cross_entropy(told[:, :5], labels) + 2.0 * off
    assert float(next(learner.learn()).loss) == pytest.approx(float(expected), rel=1e-5)


def test_one_that_always_names_one_shape_is_right_as_often_as_it_comes() -> None:
    learner = work()
    with torch.no_grad():
        learner.net.head.bias[3] = 1e3
    shown = learner._test_views(learner.shapes, 0).labels
    assert learner.test() == (int((shown == 3).sum()), 40)


def test_other_shapes_are_told_apart_by_features_alone() -> None:
    learner = work(test_images=300)
    known, asked = (learner._test_views(range(OTHERS), n).labels for n in (1, 2))

    def by_label(images: torch.Tensor) -> torch.Tensor:
        """The class of each image, as a point on a line: both parts are seen in one batch."""
        labels = next(parts)
        return torch.from_numpy(labels).float()[:, None]

    learner.halves.features = by_label
    parts = (part for labels in (known, asked) for part in np.split(labels, range(8, 300, 8)))
    right = int(np.isin(asked, known).sum())
    assert learner.transfer() == (right, 300)


@pytest.mark.slow
def test_it_learns_to_tell_its_shapes_and_others() -> None:
    learner = work(steps=150, batch_size=64, rate=3e-3, test_images=400)
    before, losses = learner.transfer(), [float(now.loss) for now in learner.learn()]
    assert losses[0] == pytest.approx(np.log(5), abs=0.7)
    assert learner.test().right > 0.35 * 400
    assert learner.transfer().right > before.right


def test_moments_kept_at_the_end_are_those_of_the_last_weights() -> None:
    learner = done(batch_size=64)
    images = next(learner._batches())[0]
    with torch.no_grad(), fast.keeping_moments(learner.net):
        trained = learner.net.train()(images)
    off = (trained - learner.net.eval()(images)).norm() / trained.norm()
    assert off < 0.2  # without the last look at the moments: 0.9


@pytest.mark.gpu
def test_a_gpu_gives_the_same_weights_again_and_names_what_it_learned() -> None:
    settings = ShapeSettings(steps=300, batch_size=256, shapes=5, test_images=1000, warm_up=20)
    first, second = (ShapePretraining(settings, "cuda") for _ in range(2))
    for learner in (first, second):
        losses = [now.loss for now in learner.learn()]
    assert digest(first.net) == digest(second.net)
    # Learned in bfloat16, tested in float32: a mean loss of l means exp(-l) right, or more.
    assert first.test().right / 1000 > float(torch.exp(-torch.stack(losses[-20:]).mean())) - 0.05


def test_the_file_says_what_the_weights_come_from(tmp_path: Path) -> None:
    learner = done()
    score, transfer = learner.test(), learner.transfer()
    halves, about = load_halves(learner.save(tmp_path / "net.npz", score, transfer))
    assert digest(halves) == digest(learner.halves)
    assert about["maker"] == "everlearn pretrain"
    assert about["settings"]["shapes"] == 5
    assert about["shapes"] == [10**9, 10**9 + 5]
    assert about["steps"] == 2
    assert about["test"] == score._asdict()
    assert about["transfer"] == {"shapes": 50, **transfer._asdict()}
    assert about["provenance"]["torch"] == torch.__version__


@pytest.mark.parametrize(
    "changes", [{"steps": 0}, {"shapes": 1}, {"maps": -1.0}, {"decay": -0.1}, {"net": "x"}]
)
def test_settings_out_of_range_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(changes))):
        replace(SMALL, **changes)


def test_the_command_writes_an_extractor_and_says_how_good_it_is(tmp_path: Path) -> None:
    out = tmp_path / "out" / "net.npz"
    told = call("pretrain", *TINY, "--out", out, "--test-images", 4, "--device", "cpu")
    assert told.code == 0, told.errors
    assert "1 steps" in told.out
    assert "50 other shapes" in told.out
    assert f"everlearn latents --weights {out}" in told.out
    assert load_halves(out).about["size"] == 16


def test_the_command_keeps_a_file_that_is_there(tmp_path: Path) -> None:
    out = tmp_path / "net.npz"
    out.write_bytes(b"precious")
    assert "is there already" in call("pretrain", *TINY, "--out", out).errors
    assert out.read_bytes() == b"precious"
    assert "must end in .npz" in call("pretrain", *TINY, "--out", tmp_path / "net.pt").errors


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("--net", "vit-lite", "--shapes", 3), "--shapes goes with an extractor"),
        (("--net", "resnet18-slim", "--data", "."), "--data goes with --net vit-lite"),
        (("--net", "derp"), "unknown net 'derp'; known: vit-lite, mlp,"),
    ],
)
def test_options_of_another_net_are_refused(tmp_path: Path, words: Any, answer: str) -> None:
    told = call("pretrain", *words, "--out", tmp_path / "net.npz")
    assert told.code == 2
    assert answer in told.errors
