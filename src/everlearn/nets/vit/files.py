"""Where weights come from: a file, a folder of `transformers` or its hub. No pickle is ever loaded."""

from __future__ import annotations

import json
import re
import struct
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
import torch
from torch import Tensor

from everlearn.nets.weights import ABOUT

_KINDS = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
}
_MODEL, _CONFIG, _IMAGES = "model.safetensors", "config.json", "preprocessor_config.json"
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_ALLOWED = (
    f"give a .npz or .safetensors file, a folder with {_MODEL}, or a name of the hub such as "
    "google/vit-base-patch16-224-in21k"
)


class Found(NamedTuple):
    """Weights by their names, and what is said about them beside."""

    tensors: dict[str, Tensor]
    about: dict[str, Any]


def read(source: str | Path) -> Found:
    """Read weights, in float32, or say what can be read."""
    path = Path(source).expanduser()
    if path.is_dir():
        return _read_folder(path)
    if path.is_file():
        return _read_file(path)
    if _HUB_NAME.fullmatch(str(source)) and path.suffix not in (".npz", ".safetensors"):
        return _read_folder(_fetch(str(source)))
    raise FileNotFoundError(f"no weights at {str(source)!r}; {_ALLOWED}")


def _read_file(path: Path) -> Found:
    if path.suffix not in (".npz", ".safetensors"):
        raise ValueError(f"{path} is of a kind that is not read; {_ALLOWED}")
    try:
        return _read_npz(path) if path.suffix == ".npz" else Found(_read_tensors(path), {})
    except (
        BadZipFile,
        struct.error,
        ValueError,
        KeyError,
        TypeError,
        EOFError,
        RuntimeError,
    ) as error:
        raise ValueError(f"{path} is cut short, damaged or of another kind: {error}") from None


def _read_npz(path: Path) -> Found:
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    about = json.loads(str(arrays.pop(ABOUT, "{}")))
    return Found({name: torch.from_numpy(a).float() for name, a in arrays.items()}, about)


def _read_tensors(path: Path) -> dict[str, Tensor]:
    """A safetensors file: the length of its head, the head (JSON), the numbers."""
    content = bytearray(path.read_bytes())
    (length,) = struct.unpack("<Q", content[:8])
    head = json.loads(content[8 : 8 + length].decode())
    head.pop("__metadata__", None)
    return {name: _cut(content, 8 + length, entry) for name, entry in head.items()}


def _cut(content: bytearray, start: int, entry: dict[str, Any]) -> Tensor:
    kind, (low, high) = _KINDS[entry["dtype"]], entry["data_offsets"]
    if high - low != prod(entry["shape"]) * kind.itemsize:
        raise ValueError(f"{high - low} bytes for a shape of {entry['shape']}")
    count = prod(entry["shape"])
    numbers = torch.frombuffer(content, dtype=kind, count=count, offset=start + low)
    return numbers.reshape(entry["shape"]).float()


def _read_folder(folder: Path) -> Found:
    """A folder of a model: its weights, and what its two settings files say of heads and images."""
    if not (folder / _MODEL).is_file():
        there = ", ".join(sorted(path.name for path in folder.iterdir())) or "nothing"
        raise FileNotFoundError(
            f"no {_MODEL} in {folder}, found {there}; files of other kinds are not read"
        )
    found = _read_file(folder / _MODEL)
    net, images = _read_settings(folder / _CONFIG), _read_settings(folder / _IMAGES)
    told = {
        "heads": net.get("num_attention_heads"),
        "mean": images.get("image_mean"),
        "std": images.get("image_std"),
    }
    return Found(found.tensors, {name: value for name, value in told.items() if value is not None})


def _read_settings(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        settings: dict[str, Any] = json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path} is no JSON: {error}") from None
    return settings


def _fetch(name: str) -> Path:
    """Have the files of a model of the hub on this machine; transformers knows where they are kept."""
    try:
        hub = import_module("transformers.utils.hub")
    except ImportError:
        raise ImportError(
            f"the weights {name!r} are no file here, and the hub is read by transformers, which is not "
            "installed: pip install 'everlearn[transformers]', or give a file or a folder"
        ) from None
    model = hub.cached_file(name, _MODEL)
    for more in (_CONFIG, _IMAGES):
        hub.cached_file(name, more, _raise_exceptions_for_missing_entries=False)
    return Path(model).parent
