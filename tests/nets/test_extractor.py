"""Files of extractors: read back as written, refused where incomplete."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from everlearn.nets.extractor import load_extractor, save_extractor
from everlearn.nets.mobilenet_weights import FILE
from everlearn.nets.split_net import SplitNet, build_split_net
from everlearn.nets.weights import digest

from ..conftest import data_file

ABOUT: dict[str, Any] = {"net": "convnet-pooled", "channels": 1, "size": 16}


def build(seed: int = 3) -> SplitNet:
    return build_split_net("convnet-pooled", 1, 16, seed)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return save_extractor(tmp_path / "net.npz", build(), ABOUT)


def rewrite(path: Path, **changes: Any) -> Path:
    """Write a file again with other arrays; None leaves one out."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files} | changes
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    return path


def test_a_file_is_read_back_as_written(path: Path) -> None:
    net, about = load_extractor(path)
    assert about == ABOUT
    assert digest(net) == digest(build())
    images = torch.rand(2, 1, 16, 16)
    assert torch.equal(net.eval().features(images), build().eval().features(images))


def test_every_array_belongs_to_a_half(path: Path) -> None:
    with np.load(path, allow_pickle=False) as file:
        assert {name.split(".")[0] for name in file.files} == {"lower", "upper", "about"}


def test_other_weights_have_another_digest() -> None:
    assert digest(build()) == digest(build())
    assert digest(build()) != digest(build(4))


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no extractor at .*; give a .npz file"):
        load_extractor(tmp_path / "net.npz")


def test_other_types_of_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "net.bin"
    path.write_bytes(b"?")
    with pytest.raises(ValueError, match="is not a readable type of file"):
        load_extractor(path)


def test_a_truncated_file_is_refused(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(ValueError, match="is truncated, damaged or of another type"):
        load_extractor(path)


def test_pickled_arrays_are_refused(path: Path) -> None:
    with pytest.raises(ValueError, match="is truncated, damaged or of another type"):
        load_extractor(rewrite(path, about=np.array([{}], object)))


@pytest.mark.parametrize("text", ["{}", "[1]", '{"channels": 1, "size": 16}'])
def test_a_file_without_the_name_of_its_net_is_refused(path: Path, text: str) -> None:
    with pytest.raises(ValueError, match="does not say the net"):
        load_extractor(rewrite(path, about=np.array(text)))


@pytest.mark.parametrize("net", ['"nonsense"', '["mlp"]'])
def test_a_file_of_an_unknown_net_is_refused(path: Path, net: str) -> None:
    text = f'{{"net": {net}, "channels": 1, "size": 16}}'
    with pytest.raises(ValueError, match="unknown split net"):
        load_extractor(rewrite(path, about=np.array(text)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lower.0.weight": None}, "missing: lower.0.weight"),
        ({"lower.more": np.zeros(2)}, "unexpected: lower.more"),
        ({"lower.0.weight": np.zeros((2, 3))}, r"of another shape: lower.0.weight \(2, 3\), not"),
    ],
)
def test_weights_of_another_net_are_refused(path: Path, changes: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"weights of one extractor convnet-pooled; {message}"):
        load_extractor(rewrite(path, **changes))


def test_mobilenet_is_read_from_its_file() -> None:
    net, about = load_extractor(data_file(FILE))
    assert (about["net"], about["channels"], about["size"]) == ("mobilenetv2", 3, 128)
    assert net.latent_shape == (576, 4, 4)
    assert digest(net) != digest(build_split_net("mobilenetv2", 3, 128, 0))
