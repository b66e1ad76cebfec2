"""Exemplars as one .npz file; equal content gives equal bytes, whatever was edited before."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
import torch
from numpy.typing import NDArray

from everlearn.core.files import write_file

_KIND = "everlearn exemplars 1"
# The dtype kind and the number of dimensions of each array.
_LAYOUT = {"kind": ("U", 0), "labels": ("i", 1), "pictures": ("u", 4), "crop": ("f", 1)}
State = dict[str, Any]


def write_state(path: Path, state: State) -> Path:
    """Write the state of a memory atomically."""
    content = BytesIO()
    # Not compressed: the output of a compressor depends on its version.
    np.savez(
        content,
        kind=np.array(_KIND),
        labels=state["labels"].numpy(),
        pictures=state["pictures"].numpy(),
        crop=np.array([] if state["crop"] is None else [state["crop"]], np.float64),
    )
    return write_file(path, content.getvalue())


def read_state(path: Path) -> State:
    """Read the state of a memory; raise ValueError on a damaged file."""
    content = BytesIO(path.read_bytes())
    try:
        arrays = _read_arrays(content)
    except (BadZipFile, ValueError, KeyError, EOFError, RuntimeError) as error:
        raise ValueError(
            f"{path} is truncated, damaged or not a memory of exemplars: {error}"
        ) from None
    if arrays["kind"] != _KIND:
        raise ValueError(f"{path} has the format {arrays['kind']}; only {_KIND!r} can be read")
    return {
        "labels": torch.from_numpy(arrays["labels"]),
        "pictures": torch.from_numpy(arrays["pictures"]),
        "shape": list(arrays["pictures"].shape[1:]),
        "crop": float(arrays["crop"][0]) if arrays["crop"].size else None,
    }


def _read_arrays(content: BytesIO) -> dict[str, NDArray[Any]]:
    with ZipFile(content) as entries:
        damaged = entries.testzip()
    if damaged is not None:
        raise ValueError(f"the checksum of {damaged} does not match")
    content.seek(0)
    with np.load(content, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in _LAYOUT}
    for name, layout in _LAYOUT.items():
        found = (arrays[name].dtype.kind, arrays[name].ndim)
        if found != layout:
            raise ValueError(f"{name} has (dtype kind, dimensions) {found}, expected {layout}")
    return arrays
