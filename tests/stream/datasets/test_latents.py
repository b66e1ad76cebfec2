"""Files of latents as data sets: what is read is given as it is, and what is no such file is named."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from everlearn import ArrayStream
from everlearn.stream.datasets.sources import load

ROWS = 60  # 5 classes, 4 sessions, 3 rows of both
SHAPE = (6, 2, 2)


def arrays() -> dict[str, NDArray[Any]]:
    row = np.arange(ROWS)
    sessions = row // 5 % 4
    return {
        "latents": np.random.default_rng(0).uniform(0, 9, (ROWS, *SHAPE)).astype(np.float16),
        "labels": row % 5,
        "sessions": 3 * sessions,  # with holes
        "test": sessions == 1,
        "about": np.array('{"net": "toy"}'),
    }


def write(folder: Path, **changes: Any) -> Path:
    (folder / "latents").mkdir(exist_ok=True)
    np.savez(folder / "latents" / "toy.npz", **(arrays() | changes))
    return folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write(tmp_path)


def stream(data: Path, **settings: Any) -> ArrayStream:
    return ArrayStream("latents/toy", data, **settings)


def test_latents_are_returned_unchanged_as_float32(data: Path) -> None:
    stored = arrays()
    found = stream(data, classes_per_task=5, val_share=0)
    assert found.canvas.shape == SHAPE
    assert (found.canvas.dtype, found.canvas.bits) == ("float32", 32)
    assert (found.size, found.channels, list(found.class_ids)) == (2, 6, [0, 1, 2, 3, 4])
    task = found[0]
    for split, rows in ((task.train, ~stored["test"]), (task.test, stored["test"])):
        batch = split.batch(slice(None))
        order = np.argsort(stored["labels"][rows], kind="stable")
        by_class = torch.argsort(batch.labels, stable=True)
        wanted = torch.from_numpy(stored["latents"][rows][order]).float()
        assert batch.images.dtype == torch.float32
        assert torch.equal(batch.images[by_class], wanted)


def test_a_batch_is_the_same_from_another_place_and_in_another_process(data: Path) -> None:
    split = stream(data)[0].train
    images = split.batch([3, 0, 3]).images
    again = pickle.loads(pickle.dumps(split))  # as a worker of a loader gets it
    assert torch.equal(again.batch([3, 0, 3]).images, images)
    assert torch.equal(split.image_source.loader("cpu:0")(torch.tensor([3, 0, 3])), images)


def test_the_table_is_put_on_a_device_once_for_all_tasks(data: Path) -> None:
    tables = {task.test.image_source.table.to("cpu").data_ptr() for task in stream(data)}  # type: ignore[attr-defined]
    assert len(tables) == 1


@pytest.mark.parametrize("scenario", ["class", "nic", "domain"])
def test_a_stream_is_equal_after_json(data: Path, scenario: str) -> None:
    found = stream(data, scenario=scenario, seed=3)
    again = ArrayStream.from_json(found.to_json(), data)
    assert again == found
    assert torch.equal(again[0].train.batch([0]).images, found[0].train.batch([0]).images)


def test_sessions_with_holes_are_counted_among_those_of_training(data: Path) -> None:
    found = stream(data, scenario="nic", val_share=0)
    assert (found.scenario.sessions, found.scenario.classes, len(found)) == (3, 5, 1 + 15 - 4)
    assert [len(task.train) for task in found] == [4 * 3] + [3] * 11
    assert all(len(task.test) == 3 * len(task.classes) for task in found)


@pytest.mark.parametrize("settings", [{"size": 4}, {"channels": 3}, {"dtype": "uint8"}])
def test_latents_are_not_resized_or_turned_to_bytes(data: Path, settings: dict[str, Any]) -> None:
    own = {"size": 2, "channels": 6, "dtype": "float32"}
    assert stream(data, **own) == stream(data)
    with pytest.raises(
        ValueError, match=r"latents of 6 x 2 x 2, which are used unchanged.*leave channels"
    ):
        stream(data, **settings)


def test_a_missing_file_is_named_with_its_command(tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"missing toy.npz; get it from the command `everlearn lat"
    ):
        load("latents/toy", tmp_path)


@pytest.mark.parametrize("name", ["latents/", "latents/../toy", "latents/a/b", "latents/.toy"])
def test_names_with_path_separators_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=r"unknown data set .*, latents/NAME"):
        load(name, tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"latents": np.zeros((ROWS, 6, 2, 2), np.float32)}, "float16 .* found float32"),
        ({"latents": np.zeros((ROWS, 6), np.float16)}, r"\(N, C, H, W\) with H = W"),
        ({"latents": np.zeros((ROWS, 6, 2, 3), np.float16)}, "with H = W"),
        ({"latents": np.full((ROWS, *SHAPE), np.nan, np.float16)}, "not all finite"),
        ({"latents": np.zeros((0, *SHAPE), np.float16)}, "latents must be"),
        ({"latents": np.array([{}], object)}, "allow_pickle"),
        ({"labels": np.zeros(5, np.int64)}, r"labels of int64 \(5,\) do not match 60 latents"),
        ({"labels": np.zeros(ROWS)}, "labels of float64"),
        ({"labels": np.full(ROWS, -1)}, "labels must lie in 0"),
        ({"sessions": np.zeros((ROWS, 1), int)}, "sessions of int64"),
        ({"test": np.zeros(ROWS, int)}, "test of int64"),
        ({"test": np.ones(ROWS, bool)}, "all of its latents are for testing"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    write(tmp_path, **change)
    with pytest.raises(ValueError, match=rf"toy.npz is corrupt or truncated: .*{message}"):
        load("latents/toy", tmp_path)


def test_a_file_without_an_array_or_cut_short_is_named(data: Path) -> None:
    path = data / "latents" / "toy.npz"
    kept = {key: array for key, array in arrays().items() if key != "sessions"}
    np.savez(path, **kept)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"toy.npz is not the expected file: sessions"):
        load("latents/toy", data)
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(ValueError, match=r"toy.npz is corrupt or truncated"):
        load("latents/toy", data)


@pytest.mark.gpu
def test_a_gpu_keeps_float16_and_gives_the_same_numbers(data: Path) -> None:
    split = stream(data)[0].train
    images = split.batch([3, 0, 3], device="cuda").images
    assert split.image_source.table.to("cuda").dtype == torch.float16  # type: ignore[attr-defined]
    assert torch.equal(images.cpu(), split.batch([3, 0, 3]).images)
