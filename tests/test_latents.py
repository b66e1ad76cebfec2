"""Latents of a stream: what the lower half makes of every image, with what is known of each."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from everlearn.factors import continuous_space
from everlearn.nets.extractor import load_halves, save_halves
from everlearn.nets.halves import build_halves
from everlearn.nets.weights import digest
from everlearn.pretraining.latents import list_sights, save_latents, see
from everlearn.render.canvas import Canvas
from everlearn.stream import Gaussians, Stream
from everlearn.stream.arrays import ArrayStream
from everlearn.stream.arrays.sources import load
from everlearn.stream.scenarios import DomainIncremental

from .conftest import call

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
    halves = build_halves("convnet-pooled", channels, size, seed)
    with torch.no_grad():
        for name, buffer in halves.named_buffers():
            if name.endswith("mean"):
                buffer.fill_(-0.1)
    about = {"net": "convnet-pooled", "channels": channels, "size": size}
    return save_halves(folder / "net.npz", halves, about)


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    return write_net(tmp_path)


@pytest.fixture
def stream_file(tmp_path: Path) -> Path:
    path = tmp_path / "stream.json"
    path.write_text(STREAM.to_json())
    return path


def extract(stream: Path, weights: Path, out: Path, *more: object) -> Any:
    words = ("--weights", weights, "--out", out, "--device", "cpu", *more)
    return call("latents", "--stream", stream, *words)


def read(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def seen(weights: Path, images: torch.Tensor) -> np.ndarray:
    """The slow way: the lower half in evaluation mode, without the rest."""
    with torch.no_grad():
        return load_halves(weights).halves.lower.eval()(images).numpy().astype(np.float16)


def test_the_file_holds_the_latents_of_every_image(
    stream_file: Path, weights: Path, tmp_path: Path
) -> None:
    out = tmp_path / "latents" / "small.npz"
    told = extract(stream_file, weights, out, "--test-sessions", 1, "--batch-size", 5)
    assert told.code == 0, told.errors
    assert "24 latents to train on, 12 to test on" in told.out
    file = read(out)
    shape = load_halves(weights).halves.shape
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
            expected = seen(weights, split.batch(slice(None)).images)
            assert np.allclose(file["latents"][rows], expected, rtol=2e-3, atol=1e-6)
            assert np.array_equal(file["labels"][rows], split.labels - 30)
    assert file["latents"].std() > 0


def test_the_file_is_a_data_set(stream_file: Path, weights: Path, tmp_path: Path) -> None:
    extract(stream_file, weights, tmp_path / "latents" / "small.npz", "--test-sessions", 1)
    stream = ArrayStream("latents/small", tmp_path, classes_per_task=2)
    assert len(stream[0].test) == 12
    assert stream.canvas.shape == load_halves(weights).halves.shape


def test_the_file_says_what_latents_come_from(
    stream_file: Path, weights: Path, tmp_path: Path
) -> None:
    extract(stream_file, weights, tmp_path / "l.npz", "--test-sessions", 0)
    about = json.loads(str(read(tmp_path / "l.npz")["about"]))
    assert Stream.from_json(json.dumps(about["stream"])) == STREAM
    halves, told = load_halves(weights)
    assert about["weights"] == {"file": "net.npz", "sha256": digest(halves), "about": told}
    assert about["maker"] == "everlearn latents"
    assert about["provenance"]["torch"] == torch.__version__


def test_sizes_of_batches_leave_latents_as_they_are(weights: Path) -> None:
    sights, halves = list_sights(STREAM, (0,)), load_halves(weights).halves
    tables = [np.empty((36, *halves.shape), np.float16) for _ in range(2)]
    for table, size in zip(tables, (1, 50), strict=True):
        assert list(see(halves.lower, sights.splits, table, size, "cpu"))[-1] == 36
    assert np.allclose(*tables, rtol=2e-3, atol=1e-6)


def test_latents_that_are_no_numbers_are_refused(weights: Path) -> None:
    sights, halves = list_sights(STREAM, (0,)), load_halves(weights).halves
    with torch.no_grad():
        next(halves.lower.parameters()).fill_(float("nan"))
    table = np.empty((36, *halves.shape), np.float16)
    with pytest.raises(ValueError, match="no number of 16 bits"):
        list(see(halves.lower, sights.splits, table, 8, "cpu"))


def test_a_disk_that_fails_leaves_no_part_of_a_file(tmp_path: Path) -> None:
    sights = list_sights(STREAM, (0,))
    table = np.zeros((36, 1, 1, 1), object)  # cannot be written without pickle
    with pytest.raises(ValueError, match="allow_pickle"):
        save_latents(tmp_path / "l.npz", table, sights, {})
    assert list(tmp_path.iterdir()) == []


def test_the_command_keeps_a_file_that_is_there(
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
        ((), "test_sessions must lie in 0 .. 2 (the sessions there are), found 6"),
        (("--test-sessions", "2,1,0"), "leave none of 3 sessions to train on"),
        (("--test-sessions", "x"), "--test-sessions must be a whole number"),
        (("--test-sessions", "1", "--scenario", "class"), "such as idsprites-50"),
        (("--test-sessions", "1", "--size", "32"), "give --size 16 --channels 1"),
    ],
)
def test_what_does_not_fit_is_refused(
    stream_file: Path, weights: Path, tmp_path: Path, more: Any, answer: str
) -> None:
    told = extract(stream_file, weights, tmp_path / "l.npz", *more)
    assert told.code == 2
    assert answer in told.errors
    assert not (tmp_path / "l.npz").exists()


def test_points_have_no_images() -> None:
    with pytest.raises(ValueError, match="latents are taken of images"):
        list_sights(Gaussians())


def real(name: str, **changes: Any) -> ArrayStream:
    """A stream of a real data set from EVERLEARN_DATA or ../shared/data, or skip the test."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    try:
        return ArrayStream(name, os.environ.get("EVERLEARN_DATA") or beside, **changes)
    except FileNotFoundError as error:
        pytest.skip(str(error))


def test_frames_of_core50_keep_their_sessions_and_tests(tmp_path: Path) -> None:
    stream = real("core50", size=32)
    weights, out = write_net(tmp_path, 3, 32), tmp_path / "core50.npz"
    told = call(
        "latents", "--name", "core50", "--data", stream.folder, "--size", 32,
        "--weights", weights, "--out", out, "--device", "cpu",
    )  # fmt: skip
    assert told.code == 0, told.errors
    file, arrays = read(out), load("core50", stream.folder)
    for name in ("labels", "sessions", "test"):
        assert np.array_equal(file[name], getattr(arrays, name))
    images = list_sights(stream).splits[0].batch([0, 5, -1 % len(arrays)]).images
    expected = seen(weights, images)
    assert np.allclose(file["latents"][[0, 5, -1]], expected, rtol=2e-3, atol=1e-6)
    assert "says itself what to test on" in call(
        "latents", "--name", "core50", "--data", stream.folder, "--test-sessions", 1,
        "--weights", weights, "--out", tmp_path / "more.npz",
    ).errors  # fmt: skip


def test_without_an_official_test_set_the_streams_own_is_taken(tmp_path: Path) -> None:
    for part in ("images_background", "images_evaluation"):
        for number in range(10):
            place = tmp_path / "omniglot-py" / part / "Alphabet" / "character01"
            place.mkdir(parents=True, exist_ok=True)
            Image.new("L", (105, 105), 20 * number).save(place / f"{number}.png")
    own: dict[str, Any] = {"classes_per_task": 2}
    for changes in (own, own | {"scenario": "domain"}):  # images of each class, or whole sessions
        stream = ArrayStream("omniglot", tmp_path, **changes)
        sights = list_sights(stream)
        tested = stream[0].test.batch(slice(None)).images[:, 0, 0, 0]
        shades = sights.splits[0].batch(sights.test.nonzero()[0]).images[:, 0, 0, 0]
        assert sights.test.sum() == 4
        assert sorted(shades.tolist()) == sorted(tested.tolist())
    assert not set(sights.sessions[sights.test]) & set(sights.sessions[~sights.test])
