"""Files of extractors: the weights of a split net, and where they come from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from everlearn.core.validate import check_int
from everlearn.nets.mobilenet_weights import FILE, load_mobilenet
from everlearn.nets.split_net import SplitNet, build_split_net
from everlearn.nets.vit.files import read_weights
from everlearn.nets.weights import check_weights, save_weights

_KEYS = ("net", "channels", "size")
_MAX_SIZE = 10_000
_MOBILENET = {"net": "mobilenetv2", "channels": 3, "size": 128}  # its .pt file names none of them
_ALLOWED = f"give a .npz file of `everlearn pretrain --net`, or {Path(FILE).name}"


class LoadedExtractor(NamedTuple):
    """A net with its weights, and what their file says about them: at least net, channels and size."""

    net: SplitNet
    about: dict[str, Any]


def save_extractor(path: Path, net: SplitNet, about: dict[str, Any]) -> Path:
    """Write a split net as .npz, atomically.

    Args:
        about: must contain the net's name, and the channels and size of its images.
    """
    return save_weights(path, net.state_dict(), about)


def load_extractor(source: str | Path) -> LoadedExtractor:
    """Build the net of a file; raise where the file is incomplete."""
    path = Path(source).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"no extractor at {str(source)!r}; {_ALLOWED}")
    if path.suffix == ".pt":
        return _load_mobilenet(path)
    if path.suffix != ".npz":
        raise ValueError(f"{path} is not a readable type of file; {_ALLOWED}")
    tensors, about = read_weights(path)
    missing = [key for key in _KEYS if key not in about] if isinstance(about, dict) else _KEYS
    if missing:
        raise ValueError(
            f"{path} does not say the {', '.join(missing)} of an extractor; {_ALLOWED}"
        )
    net = _build(about, path)
    check_weights(net.state_dict(), tensors, path, f"extractor {about['net']}")
    net.load_state_dict(tensors)
    return LoadedExtractor(net, about)


def _load_mobilenet(path: Path) -> LoadedExtractor:
    net = _build(_MOBILENET, path)
    load_mobilenet(net.lower, net.upper, path)
    return LoadedExtractor(net, dict(_MOBILENET))


def _build(about: Mapping[str, Any], path: Path) -> SplitNet:
    """Build the net that a file describes, with random weights."""
    channels = check_int(about["channels"], f"channels of {path}", 1, _MAX_SIZE)
    size = check_int(about["size"], f"size of {path}", 1, _MAX_SIZE)
    return build_split_net(str(about["net"]), channels, size, 0)
