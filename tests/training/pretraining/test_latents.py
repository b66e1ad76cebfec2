"""Latents of a stream: the output of the lower half for every image, with class and session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from everlearn.factors import continuous_space
from everlearn.nets.extractor import load_extractor, save_extractor
from everlearn.nets.split_net import build_split_net
from everlearn.nets.weights import digest
from everlearn.render.canvas import Canvas
from everlearn.stream import Gaussians, Stream
from everlearn.stream.datasets import ArrayStream
from everlearn.stream.datasets.sources import load
from everlearn.stream.scenarios.incremental import DomainIncremental
from everlearn.training.pretraining.latents import compute_latents, list_images, save_latents

from ...conftest import call, needs_data

STREAM = Stream(
    tasks=3,
    classes_per_task=2,
    scenario=DomainIncremental("orientation", 3),
    split=(6, 2, 4),
    factors=continuous_space(),
    canvas=Canvas(16),
    first_class=30,
)


def write_net(folder: Path, channels: int = 1, size: int = 16, seed: int = 1) -> Path:
    net = build_split_net("convnet-pooled", channels, size, seed)
    with torch.no_grad():
        for name, buffer in net.named_buffers():
            if name.endswith("mean"):
                buffer.fill_(-0.1)
    about = {"net": "convnet-pooled", "channels": channels, "size": size}
    return save_extractor(folder / "net.npz", net, about)


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    return write_net(tmp_path)


@pytest.fixture
def stream_file(tmp_path: Path) -> Path:
    path = tmp_path / "stream.json"
    path.write_text(STREAM.to_json())
    return path


def extract(stream: Path, weights: Path, out: Path, *more: object) -> Any:
    options = ("--weights", weights, "--out", out, "--device", "cpu", *more)
    return call("latents", "--stream", stream, *options)


def read(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def lower_half(weights: Path, images: torch.Tensor) -> np.ndarray:
    """The slow oracle: the lower half in evaluation mode, without batches."""
    with torch.no_grad():
        return load_extractor(weights).net.lower.eval()(images).numpy().astype(np.float16)


def test_the_file_holds_the_latents_of_every_image(
    stream_file: Path, weights: Path, tmp_path: Path
) -> None:
    out = tmp_path / "latents" / "small.npz"
    result = extract(stream_file, weights, out, "--test-sessions", 1, "--batch-size", 5)
    assert result.code == 0, result.errors
    assert "24 latents to train on, 12 to test on" in result.out
    file = read(out)
    shape = load_extractor(weights).net.latent_shape
    assert file["latents"].shape == (36, *shape)
    assert [file[name].dtype for name in ("latents", "labels", "sessions", "test")] == [
        np.float16, np.int64, np.int64, np.bool_,
    ]  # fmt: skip
    assert file["sessions"].tolist() == [0] * 12 + [1] * 12 + [2] * 12
    assert np.array_equal(file["test"], file["sessions"] == 1)
    assert np.bincount(file["labels"]).tolist() == [18, 18]
    for task in STREAM:
        for split, start in ((task.train, 0), (task.val, 6), (task.test, 8)):
            rows = slice(12 * task.index + start, 12 * task.index + start + len(split))
            expected = lower_half(weights, split.batch(slice(None)).images)
            assert np.allclose(file["latents"][rows], expected, rtol=2e-3, atol=1e-6)
            assert np.array_equal(file["labels"][rows], split.labels - 30)
    assert file["latents"].std() > 0


def test_the_file_is_a_data_set(stream_file: Path, weights: Path, tmp_path: Path) -> None:
    extract(stream_file, weights, tmp_path / "latents" / "small.npz", "--test-sessions", 1)
    stream = ArrayStream("latents/small", tmp_path, classes_per_task=2)
    assert len(stream[0].test) == 12
    assert stream.canvas.shape == load_extractor(weights).net.latent_shape


def test_the_file_describes_where_latents_come_from(
    stream_file: Path, weights: Path, tmp_path: Path
) -> None:
    extract(stream_file, weights, tmp_path / "l.npz", "--test-sessions", 0)
    about = json.loads(str(read(tmp_path / "l.npz")["about"]))
    assert Stream.from_json(json.dumps(about["stream"])) == STREAM
    net, description = load_extractor(weights)
    assert about["weights"] == {"file": "net.npz", "sha256": digest(net), "about": description}
    assert about["maker"] == "everlearn latents"
    assert about["provenance"]["torch"] == torch.__version__


def test_the_batch_size_does_not_change_latents(weights: Path) -> None:
    images, net = list_images(STREAM, (0,)), load_extractor(weights).net
    tables = [np.empty((36, *net.latent_shape), np.float16) for _ in range(2)]
    for table, size in zip(tables, (1, 50), strict=True):
        assert list(compute_latents(net.lower, images.splits, table, size, "cpu"))[-1] == 36
    assert np.allclose(*tables, rtol=2e-3, atol=1e-6)


def test_latents_that_are_not_finite_are_refused(weights: Path) -> None:
    images, net = list_images(STREAM, (0,)), load_extractor(weights).net
    with torch.no_grad():
        next(net.lower.parameters()).fill_(float("nan"))
    table = np.empty((36, *net.latent_shape), np.float16)
    with pytest.raises(ValueError, match="overflows float16"):
        list(compute_latents(net.lower, images.splits, table, 8, "cpu"))


def test_a_failed_write_leaves_no_file(tmp_path: Path) -> None:
    images = list_images(STREAM, (0,))
    table = np.zeros((36, 1, 1, 1), object)  # cannot be written without pickle
    with pytest.raises(ValueError, match="allow_pickle"):
        save_latents(tmp_path / "l.npz", table, images, {})
    assert list(tmp_path.iterdir()) == []


def test_the_command_does_not_overwrite_a_file(
    stream_file: Path, weights: Path, tmp_path: Path
) -> None:
    out = tmp_path / "l.npz"
    out.write_bytes(b"precious")
    assert "is there already" in extract(stream_file, weights, out).errors
    assert out.read_bytes() == b"precious"
    assert "must end in .npz" in extract(stream_file, weights, tmp_path / "l.pt").errors


@pytest.mark.parametrize(
    ("more", "answer"),
    [
        ((), "test_sessions must lie in 0 .. 2 (the last session), found 6"),
        (("--test-sessions", "2,1,0"), "leave none of 3 sessions to train on"),
        (("--test-sessions", "x"), "--test-sessions must be a whole number"),
        (("--test-sessions", "1", "--scenario", "class"), "such as idsprites-50"),
        (("--test-sessions", "1", "--size", "32"), "give --size 16 --channels 1"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    stream_file: Path, weights: Path, tmp_path: Path, more: Any, answer: str
) -> None:
    result = extract(stream_file, weights, tmp_path / "l.npz", *more)
    assert result.code == 2
    assert answer in result.errors
    assert not (tmp_path / "l.npz").exists()


def test_a_stream_of_points_is_refused() -> None:
    with pytest.raises(ValueError, match="latents need a stream of images"):
        list_images(Gaussians())


def test_core50_keeps_its_sessions_and_test_images(tmp_path: Path) -> None:
    with needs_data() as folder:
        stream = ArrayStream("core50", folder, size=32)
    weights, out = write_net(tmp_path, 3, 32), tmp_path / "core50.npz"
    result = call(
        "latents", "--name", "core50", "--data", stream.folder, "--size", 32,
        "--weights", weights, "--out", out, "--device", "cpu",
    )  # fmt: skip
    assert result.code == 0, result.errors
    file, arrays = read(out), load("core50", stream.folder)
    for name in ("labels", "sessions", "test"):
        assert np.array_equal(file[name], getattr(arrays, name))
    frames = list_images(stream).splits[0].batch([0, 5, -1 % len(arrays)]).images
    expected = lower_half(weights, frames)
    assert np.allclose(file["latents"][[0, 5, -1]], expected, rtol=2e-3, atol=1e-6)
    assert "defines its own test images" in call(
        "latents", "--name", "core50", "--data", stream.folder, "--test-sessions", 1,
        "--weights", weights, "--out", tmp_path / "more.npz",
    ).errors  # fmt: skip


def test_without_an_official_test_set_the_stream_splits_the_images(tmp_path: Path) -> None:
    for part in ("images_background", "images_evaluation"):
        for number in range(10):
            folder = tmp_path / "omniglot-py" / part / "Alphabet" / "character01"
            folder.mkdir(parents=True, exist_ok=True)
            Image.new("L", (105, 105), 20 * number).save(folder / f"{number}.png")
    settings: dict[str, Any] = {"classes_per_task": 2}
    for changes in (
        settings,
        settings | {"scenario": "domain"},
    ):  # images of each class, or whole sessions
        stream = ArrayStream("omniglot", tmp_path, **changes)
        images = list_images(stream)
        tested = stream[0].test.batch(slice(None)).images[:, 0, 0, 0]
        shades = images.splits[0].batch(images.test.nonzero()[0]).images[:, 0, 0, 0]
        assert images.test.sum() == 4
        assert sorted(shades.tolist()) == sorted(tested.tolist())
    assert not set(images.sessions[images.test]) & set(images.sessions[~images.test])
