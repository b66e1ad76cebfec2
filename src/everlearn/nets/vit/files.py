"""Read weights from a file, a folder of `transformers` or its hub. No pickle is ever loaded."""

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

_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
}
_MODEL = "model.safetensors"
_CONFIG = "config.json"
_PREPROCESSOR = "preprocessor_config.json"
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_ALLOWED = (
    f"give a .npz or .safetensors file, a folder with {_MODEL}, or a name of the hub such as "
    "google/vit-base-patch16-224-in21k"
)


class NamedWeights(NamedTuple):
    """Weights by name, and what their file says about them."""

    tensors: dict[str, Tensor]
    about: dict[str, Any]


def read_weights(source: str | Path) -> NamedWeights:
    """Read weights in float32 from a file, a folder or the hub."""
    path = Path(source).expanduser()
    if path.is_dir():
        return _read_folder(path)
    if path.is_file():
        return _read_file(path)
    if _HUB_NAME.fullmatch(str(source)) and path.suffix not in (".npz", ".safetensors"):
        return _read_folder(_download(str(source)))
    raise FileNotFoundError(f"no weights at {str(source)!r}; {_ALLOWED}")


def _read_file(path: Path) -> NamedWeights:
    if path.suffix not in (".npz", ".safetensors"):
        raise ValueError(f"{path} is not a readable type of file; {_ALLOWED}")
    try:
        return _read_npz(path) if path.suffix == ".npz" else _read_safetensors(path)
    except (
        BadZipFile,
        struct.error,
        ValueError,
        KeyError,
        TypeError,
        EOFError,
        RuntimeError,
    ) as error:
        raise ValueError(f"{path} is truncated, damaged or of another type: {error}") from None


def _read_npz(path: Path) -> NamedWeights:
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    about = json.loads(str(arrays.pop(ABOUT, "{}")))
    return NamedWeights({name: torch.from_numpy(a).float() for name, a in arrays.items()}, about)


def _read_safetensors(path: Path) -> NamedWeights:
    """Read a safetensors file: the length of its header, the header (JSON), the data."""
    content = bytearray(path.read_bytes())
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length].decode())
    header.pop("__metadata__", None)
    tensors = {name: _tensor(content, 8 + length, entry) for name, entry in header.items()}
    return NamedWeights(tensors, {})


def _tensor(content: bytearray, start: int, entry: dict[str, Any]) -> Tensor:
    """One tensor of the data, which begins at byte `start`."""
    dtype = _DTYPES[entry["dtype"]]
    count = prod(entry["shape"])
    low, high = entry["data_offsets"]
    if high - low != count * dtype.itemsize:
        raise ValueError(f"{high - low} bytes for a shape of {entry['shape']}")
    values = torch.frombuffer(content, dtype=dtype, count=count, offset=start + low)
    return values.reshape(entry["shape"]).float()


def _read_folder(folder: Path) -> NamedWeights:
    """Read a model's weights, and the heads and image statistics from its two JSON files."""
    if not (folder / _MODEL).is_file():
        names = ", ".join(sorted(path.name for path in folder.iterdir())) or "nothing"
        raise FileNotFoundError(
            f"no {_MODEL} in {folder}, found {names}; files of other types are not read"
        )
    weights = _read_file(folder / _MODEL)
    config = _read_json(folder / _CONFIG)
    preprocessor = _read_json(folder / _PREPROCESSOR)
    about = {
        "heads": config.get("num_attention_heads"),
        "mean": preprocessor.get("image_mean"),
        "std": preprocessor.get("image_std"),
    }
    known = {name: value for name, value in about.items() if value is not None}
    return NamedWeights(weights.tensors, known)


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        content: dict[str, Any] = json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    return content


def _download(name: str) -> Path:
    """Download a model of the hub where needed; return its folder in the cache of `transformers`."""
    try:
        hub = import_module("transformers.utils.hub")
    except ImportError:
        raise ImportError(
            f"the weights {name!r} are not a file here, and reading the hub needs transformers, which is "
            "not installed: pip install 'everlearn[transformers]', or give a file or a folder"
        ) from None
    model = hub.cached_file(name, _MODEL)
    for file in (_CONFIG, _PREPROCESSOR):
        hub.cached_file(name, file, _raise_exceptions_for_missing_entries=False)
    return Path(model).parent
