"""Pre-training on another domain: the same steps give the same weights, which l2p-lite can use."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import typer
from typer.testing import CliRunner

from everlearn.cli.pretrain import pretrain
from everlearn.methods.l2p import Settings as Prompting
from everlearn.methods.l2p import build_lite
from everlearn.nets.vit.weights import load_vit
from everlearn.stream.datasets import ArrayStream
from everlearn.training.pretraining import Pretraining, Settings
from everlearn.training.pretraining.pretraining import draw_maps

FOLDERS = ("MNIST", "FashionMNIST")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tiny data sets: a class is a bright square, smaller in the second; its position is the class."""
    folder = tmp_path_factory.mktemp("data")
    for side, name in zip((8, 4), FOLDERS, strict=True):
        raw = folder / name / "raw"
        raw.mkdir(parents=True)
        for split, count in (("train", 60), ("t10k", 20)):
            labels = np.arange(count) % 10
            images = np.zeros((count, 28, 28), np.uint8)
            for image, label in zip(images, labels, strict=True):
                row, column = 2 + 9 * (label // 4), 1 + 7 * (label % 4)
                image[row : row + side, column : column + side] = 255
            write(raw / f"{split}-images-idx3-ubyte.gz", images)
            write(raw / f"{split}-labels-idx1-ubyte.gz", labels.astype(np.uint8))
    return folder


def write(path: Path, array: np.ndarray) -> None:
    head = bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape)
    path.write_bytes(gzip.compress(head + array.tobytes()))


def make(data: Path, **changes: Any) -> Pretraining:
    given = {"steps": 3, "batch_size": 16, "net": "vit-test", "warm_up": 20} | changes
    return Pretraining(Settings(**given), data, "cpu")


def trained(data: Path, **changes: Any) -> Pretraining:
    learner = make(data, **changes)
    for _ in learner.learn():
        pass
    return learner


def same(one: Pretraining, two: Pretraining) -> bool:
    ours, theirs = one.net.state_dict(), two.net.state_dict()
    return all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_the_same_steps_give_the_same_weights(data: Path) -> None:
    first = trained(data)
    assert first.done == 3
    assert same(first, trained(data))
    assert not same(first, trained(data, seed=1))
    assert not same(first, make(data))


@pytest.mark.integration
def test_a_timed_run_can_be_repeated_by_its_number_of_steps(data: Path) -> None:
    timed = trained(data, steps=None, seconds=1.0, batch_size=4)
    assert timed.done >= 20
    assert same(timed, trained(data, steps=timed.done, batch_size=4))


@pytest.mark.integration
def test_it_learns_to_classify(data: Path) -> None:
    learner = make(data, steps=150, batch_size=40, learning_rate=3e-3)
    before, losses = learner.test(), [float(progress.loss) for progress in learner.learn()]
    after = learner.test()
    assert before.total == after.total == 40
    assert losses[0] == pytest.approx(np.log(20), abs=0.5)
    assert after.correct >= max(8, before.correct + 4)


def test_batches_hold_both_data_sets_with_distinct_labels(data: Path) -> None:
    images, labels, maps = next(make(data)._batches())
    assert images.shape == (16, 1, 32, 32)
    assert maps.shape == (16, 2, 3)
    assert ((labels[:8] >= 0) & (labels[:8] < 10)).all()
    assert ((labels[8:] >= 10) & (labels[8:] < 20)).all()
    assert (images[:8].sum((1, 2, 3)) > 2 * images[8:].sum((1, 2, 3)).max()).all()


def test_the_seed_determines_the_maps_of_a_batch(data: Path) -> None:
    maps = next(make(data, seed=5)._batches())[2]
    assert np.array_equal(maps.numpy(), draw_maps(5, range(1), 16)[0])


@pytest.mark.parametrize("label", [3, 13])
def test_a_constant_prediction_scores_the_frequency_of_its_class(data: Path, label: int) -> None:
    learner = make(data)
    with torch.no_grad():
        learner.net[1].bias[label] = 1e3
    assert learner.test() == (2, 40)


def test_the_learning_rate_rises_linearly_and_falls_along_a_cosine_to_zero() -> None:
    settings = Settings(learning_rate=0.1, warm_up=50)
    assert settings.learning_rate_at(0, None) == pytest.approx(0.1 / 50)
    assert settings.learning_rate_at(24, 150) == pytest.approx(0.05)
    assert settings.learning_rate_at(50, 150) == pytest.approx(0.1)
    assert settings.learning_rate_at(100, 150) == pytest.approx(0.05)
    assert settings.learning_rate_at(150, 150) == pytest.approx(0.0)


def test_transformed_images_are_smaller_and_stay_within_the_canvas() -> None:
    maps = draw_maps(0, range(50), 20).reshape(-1, 2, 3)
    grow = maps[:, 0, 0]
    assert (maps[:, [0, 1], [1, 0]] == 0).all()
    assert (grow >= 1).all()
    assert (grow <= 2).all()
    # The position u of the point c of the image: c = grow u + shift.
    corners = (np.array([-1.0, 1.0])[:, None, None] - maps[:, :, 2]) / grow[:, None]
    assert np.abs(corners).max() <= 1 + 1e-6
    assert np.abs(corners.mean(0)).max() > 0.4


def test_maps_do_not_depend_on_how_many_are_drawn_at_once() -> None:
    assert np.array_equal(draw_maps(3, range(8), 5)[6:], draw_maps(3, range(6, 8), 5))
    assert not np.array_equal(draw_maps(3, range(1), 5), draw_maps(4, range(1), 5))


def test_the_file_describes_where_the_weights_come_from(data: Path, tmp_path: Path) -> None:
    learner = trained(data)
    score = learner.test()
    net, about = load_vit(learner.save(tmp_path / "net.npz", score))
    assert torch.equal(net.pos_embed, learner.vit.pos_embed)
    assert about["maker"] == "everlearn pretrain"
    assert about["data"] == {"mnist": 60, "fashion-mnist": 60}
    assert about["steps"] == 3
    assert about["settings"]["seed"] == 0
    assert about["test"] == {"correct": score.correct, "total": 40}
    assert about["provenance"]["torch"] == torch.__version__


def test_l2p_lite_learns_on_these_weights(data: Path, tmp_path: Path) -> None:
    learner = trained(data)
    weights = learner.save(tmp_path / "net.npz", learner.test())
    stream = ArrayStream("mnist", data, tasks=2, classes_per_task=2)
    method = build_lite(stream, Prompting(weights=str(weights)), "cpu")
    for _ in method.learn(stream[0]):
        pass
    batch = stream[0].test.batch(slice(None))
    assert set(method.predict(batch.images).tolist()) <= set(stream[0].classes)


@pytest.mark.parametrize("changes", [{"steps": 0}, {"seconds": 0.0}, {"warm_up": 5}, {"net": "x"}])
def test_settings_out_of_range_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(changes))}"):
        Settings(**changes)


def command(*options: str) -> Any:
    app = typer.Typer()
    app.command()(pretrain)
    return CliRunner().invoke(app, list(options))


def test_the_command_writes_weights_and_prints_how_to_use_them(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out" / "net.npz"
    ended = command(
        "--out", str(out), "--data", str(data), "--steps", "2", "--batch-size", "4",
        "--test-images", "4", "--device", "cpu",
    )  # fmt: skip
    assert ended.exit_code == 0, ended.output
    assert "2 steps" in ended.output
    assert "l2p-lite --weights" in ended.output
    assert load_vit(out).net.config.width == 192


def test_the_command_does_not_overwrite_a_file(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "net.npz"
    out.write_bytes(b"precious")
    ended = command("--out", str(out), "--data", str(data), "--steps", "2")
    assert "is there already" in str(ended.exception)
    assert out.read_bytes() == b"precious"
    assert "must end in .npz" in str(command("--out", str(tmp_path / "net.pt")).exception)
