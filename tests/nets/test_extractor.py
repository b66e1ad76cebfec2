"""Files of extractors: read back as they were written, refused where they are not whole."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from everlearn.nets.extractor import load_halves, save_halves
from everlearn.nets.halves import Halves, build_halves
from everlearn.nets.mobilenet_weights import FILE
from everlearn.nets.weights import digest
from everlearn.stream.arrays.files import data_folder

ABOUT: dict[str, Any] = {"net": "convnet-pooled", "channels": 1, "size": 16}


def build(seed: int = 3) -> Halves:
    return build_halves("convnet-pooled", 1, 16, seed)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return save_halves(tmp_path / "net.npz", build(), ABOUT)


def rewrite(path: Path, **changes: Any) -> Path:
    """Write a file again with other arrays; None leaves one out."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files} | changes
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    return path


def test_what_is_read_is_what_was_written(path: Path) -> None:
    halves, about = load_halves(path)
    assert about == ABOUT
    assert digest(halves) == digest(build())
    images = torch.rand(2, 1, 16, 16)
    assert torch.equal(halves.eval().features(images), build().eval().features(images))


def test_every_array_is_of_a_half(path: Path) -> None:
    with np.load(path, allow_pickle=False) as file:
        assert {name.split(".")[0] for name in file.files} == {"lower", "upper", "about"}


def test_other_weights_have_another_digest() -> None:
    assert digest(build()) == digest(build())
    assert digest(build()) != digest(build(4))


def test_a_file_that_is_not_there_is_said_to_be_so(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no extractor at .*; give a .npz file"):
        load_halves(tmp_path / "net.npz")


def test_other_kinds_of_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "net.bin"
    path.write_bytes(b"?")
    with pytest.raises(ValueError, match="is of a kind that is not read"):
        load_halves(path)


def test_a_file_cut_short_is_refused(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(ValueError, match="is cut short, damaged or of another kind"):
        load_halves(path)


def test_pickled_arrays_are_refused(path: Path) -> None:
    with pytest.raises(ValueError, match="is cut short, damaged or of another kind"):
        load_halves(rewrite(path, about=np.array([{}], object)))


@pytest.mark.parametrize("text", ["{}", "[1]", '{"channels": 1, "size": 16}'])
def test_a_file_that_does_not_say_its_net_is_refused(path: Path, text: str) -> None:
    with pytest.raises(ValueError, match="does not say the net"):
        load_halves(rewrite(path, about=np.array(text)))


@pytest.mark.parametrize("net", ['"nonsense"', '["mlp"]'])
def test_a_file_of_an_unknown_net_is_refused(path: Path, net: str) -> None:
    text = f'{{"net": {net}, "channels": 1, "size": 16}}'
    with pytest.raises(ValueError, match="unknown net in two halves"):
        load_halves(rewrite(path, about=np.array(text)))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"lower.0.weight": None}, "missing: lower.0.weight"),
        ({"lower.more": np.zeros(2)}, "left over: lower.more"),
        ({"lower.0.weight": np.zeros((2, 3))}, r"of another shape: lower.0.weight \(2, 3\), not"),
    ],
)
def test_weights_of_another_net_are_refused(path: Path, changes: Any, words: str) -> None:
    with pytest.raises(ValueError, match=f"weights of one extractor convnet-pooled; {words}"):
        load_halves(rewrite(path, **changes))


def test_mobilenet_is_read_from_its_own_file() -> None:
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    try:
        path = data_folder(os.environ.get("EVERLEARN_DATA") or beside) / FILE
        halves, about = load_halves(path)
    except FileNotFoundError as error:
        pytest.skip(str(error))
    assert (about["net"], about["channels"], about["size"]) == ("mobilenetv2", 3, 128)
    assert halves.shape == (576, 4, 4)
    assert digest(halves) != digest(build_halves("mobilenetv2", 3, 128, 0))
