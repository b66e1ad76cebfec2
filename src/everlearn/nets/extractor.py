"""Files of extractors: the weights of both halves of a net, and what they come from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from everlearn.border import check_whole
from everlearn.nets.halves import Halves, build_halves
from everlearn.nets.mobilenet_weights import FILE, load_mobilenet
from everlearn.nets.vit.files import read
from everlearn.nets.weights import check_weights, save_weights

_KEYS = ("net", "channels", "size")
_LARGEST = 10_000
_MOBILENET = {"net": "mobilenetv2", "channels": 3, "size": 128}  # its .pt file names none of them
_ALLOWED = f"give a .npz file of `everlearn pretrain --net`, or {Path(FILE).name}"


class Loaded(NamedTuple):
    """A net with its weights, and what their file says about them: its net, channels and size at least."""

    halves: Halves
    about: dict[str, Any]


def save_halves(path: Path, halves: Halves, about: dict[str, Any]) -> Path:
    """Write both halves as .npz; the file is whole or not there.

    Args:
        about: must say the net, and the channels and size of its images.
    """
    return save_weights(path, halves.state_dict(), about)


def load_halves(source: str | Path) -> Loaded:
    """Build the net that a file holds; raise where it is not whole."""
    path = Path(source).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"no extractor at {str(source)!r}; {_ALLOWED}")
    if path.suffix == ".pt":
        return _load_mobilenet(path)
    if path.suffix != ".npz":
        raise ValueError(f"{path} is of a kind that is not read; {_ALLOWED}")
    tensors, about = read(path)
    lost = [key for key in _KEYS if key not in about] if isinstance(about, dict) else _KEYS
    if lost:
        raise ValueError(f"{path} does not say the {', '.join(lost)} of an extractor; {_ALLOWED}")
    halves = _build(about, path)
    check_weights(halves.state_dict(), tensors, path, f"extractor {about['net']}")
    halves.load_state_dict(tensors)
    return Loaded(halves, about)


def _load_mobilenet(path: Path) -> Loaded:
    halves = _build(_MOBILENET, path)
    load_mobilenet(halves.lower, halves.upper, path)
    return Loaded(halves, dict(_MOBILENET))


def _build(about: Mapping[str, Any], path: Path) -> Halves:
    """The net that a file is of, with random weights."""
    channels, size = (check_whole(about[key], f"{key} of {path}", 1, _LARGEST) for key in _KEYS[1:])
    return build_halves(str(about["net"]), channels, size, 0)
