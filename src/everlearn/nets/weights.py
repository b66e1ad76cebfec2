"""Weights by their names: whether they are those of a net, and what tells them apart."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn

from everlearn.disk import write_file

ABOUT = "about"  # the entry of a .npz file that is no weight but a text about them, JSON
_SHOWN = 5


def save_weights(path: Path, weights: Mapping[str, Tensor], about: dict[str, Any]) -> Path:
    """Write weights as .npz, with what is to be said about them; the file is whole or not there."""
    content, text = BytesIO(), json.dumps(about)
    arrays = {name: tensor.cpu().numpy() for name, tensor in weights.items()}
    np.savez(content, allow_pickle=False, **arrays, **{ABOUT: np.array(text)})
    return write_file(path, content.getvalue())


def check_weights(
    expected: Mapping[str, Tensor], found: Mapping[str, Tensor], source: object, net: str
) -> None:
    """Raise where a weight is missing, left over or of another shape.

    Args:
        source: where the weights were found.
        net: what they should be of, in words.
    """
    missing = [name for name in expected if name not in found]
    left = [name for name in found if name not in expected]
    wrong = [
        f"{name} {tuple(found[name].shape)}, not {tuple(expected[name].shape)}"
        for name in expected
        if name in found and found[name].shape != expected[name].shape
    ]
    parts = (("missing", missing), ("left over", left), ("of another shape", wrong))
    told = "; ".join(f"{words}: {some(names)}" for words, names in parts if names)
    if told:
        raise ValueError(f"{source} does not hold the weights of one {net}; {told}")


def digest(net: nn.Module) -> str:
    """A text that no other weights have (SHA-256)."""
    out = hashlib.sha256()
    for name, tensor in sorted(net.state_dict().items()):
        out.update(f"{name} {tuple(tensor.shape)}".encode())
        out.update(np.ascontiguousarray(tensor.cpu().numpy(), "<f4").tobytes())
    return out.hexdigest()


def some(names: Iterable[str]) -> str:
    """The first few names, and how many more there are."""
    several = list(names)
    more = f" and {len(several) - _SHOWN} more" if len(several) > _SHOWN else ""
    return (", ".join(several[:_SHOWN]) or "nothing") + more
