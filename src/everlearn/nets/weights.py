"""Named weights: files, checks and digests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn

from everlearn.core.files import write_file

ABOUT = "about"  # the entry of a .npz file that holds a JSON text about the weights
_MAX_NAMES = 5


def save_weights(path: Path, weights: Mapping[str, Tensor], about: dict[str, Any]) -> Path:
    """Write weights, and a description of them, as .npz, atomically."""
    content = BytesIO()
    text = json.dumps(about)
    arrays = {name: tensor.cpu().numpy() for name, tensor in weights.items()}
    np.savez(content, allow_pickle=False, **arrays, **{ABOUT: np.array(text)})
    return write_file(path, content.getvalue())


def check_weights(
    expected: Mapping[str, Tensor], found: Mapping[str, Tensor], source: object, net: str
) -> None:
    """Raise where a weight is missing, unexpected or of another shape.

    Args:
        source: where the weights come from.
        net: the type of net, for the message.
    """
    missing = [name for name in expected if name not in found]
    unexpected = [name for name in found if name not in expected]
    reshaped = [
        f"{name} {tuple(found[name].shape)}, not {tuple(expected[name].shape)}"
        for name in expected
        if name in found and found[name].shape != expected[name].shape
    ]
    problems = (("missing", missing), ("unexpected", unexpected), ("of another shape", reshaped))
    message = "; ".join(f"{problem}: {list_some(names)}" for problem, names in problems if names)
    if message:
        raise ValueError(f"{source} does not hold the weights of one {net}; {message}")


def digest(net: nn.Module) -> str:
    """Return the SHA-256 of a net's names, shapes and weights."""
    out = hashlib.sha256()
    for name, tensor in sorted(net.state_dict().items()):
        out.update(f"{name} {tuple(tensor.shape)}".encode())
        out.update(np.ascontiguousarray(tensor.cpu().numpy(), "<f4").tobytes())
    return out.hexdigest()


def list_some(names: Iterable[str]) -> str:
    """List the first few names, and the number of further ones."""
    listed = list(names)
    more = f" and {len(listed) - _MAX_NAMES} more" if len(listed) > _MAX_NAMES else ""
    return (", ".join(listed[:_MAX_NAMES]) or "nothing") + more
