"""Weights of a vision transformer: read and checked, written, told apart."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from everlearn.disk import write_file
from everlearn.nets.seeded import seeded
from everlearn.nets.vit import Config, ViT
from everlearn.nets.vit.config import IMAGENET_MEAN, IMAGENET_STD
from everlearn.nets.vit.files import ABOUT, read
from everlearn.nets.vit.names import to_timm

_HEAD_WIDTH = 64  # of all usual transformers: ViT-Ti to ViT-L, DeiT, DINO
_SHOWN = 5
_BLOCK = re.compile(r"blocks\.(\d+)\.")


class Loaded(NamedTuple):
    """A transformer with its weights, and what their file says about them."""

    net: ViT
    about: dict[str, Any]


def load_vit(source: str | Path) -> Loaded:
    """Build the transformer that weights are of; raise where they are not whole."""
    found = read(source)
    tensors = to_timm(found.tensors)
    config = find_config(tensors, found.about, source)
    with seeded(0):  # the weights take the place of the random ones
        net = ViT(config)
    _check(net.state_dict(), tensors, source)
    net.load_state_dict(tensors)
    return Loaded(net, found.about)


def save_vit(path: Path, net: ViT, about: dict[str, Any]) -> Path:
    """Write weights as .npz, with what they are of; the file is whole or not there."""
    content, text = BytesIO(), json.dumps({**about, "config": asdict(net.config)})
    arrays = {name: tensor.cpu().numpy() for name, tensor in net.state_dict().items()}
    np.savez(content, allow_pickle=False, **arrays, **{ABOUT: np.array(text)})
    return write_file(path, content.getvalue())


def digest(net: ViT) -> str:
    """A text that no other weights have (SHA-256)."""
    out = hashlib.sha256()
    for name, tensor in sorted(net.state_dict().items()):
        out.update(f"{name} {tuple(tensor.shape)}".encode())
        out.update(np.ascontiguousarray(tensor.cpu().numpy(), "<f4").tobytes())
    return out.hexdigest()


def find_config(
    tensors: Mapping[str, Tensor], about: Mapping[str, Any], source: object = "these"
) -> Config:
    """What weights are of: as their file says, or else from their shapes."""
    if "config" in about:
        told = about["config"]
        return Config(**told | {name: tuple(told[name]) for name in ("mean", "std")})
    needed = ("pos_embed", "patch_embed.proj.weight", "blocks.0.mlp.fc1.weight")
    lost = [name for name in needed if name not in tensors]
    if lost:
        raise ValueError(
            f"{source} holds no weights of a vision transformer: it lacks {', '.join(lost)}; found "
            f"{_some(tensors)}"
        )
    return _by_shapes(tensors, about, source)


def _by_shapes(tensors: Mapping[str, Tensor], about: Mapping[str, Any], source: object) -> Config:
    _, places, width = tensors["pos_embed"].shape
    _, channels, patch, _ = tensors["patch_embed.proj.weight"].shape
    grid, scaled = math.isqrt(places - 1), "blocks.0.ls1.gamma" in tensors
    heads = about.get("heads", max(1, width // _HEAD_WIDTH))
    if grid**2 != places - 1 or width % heads:
        raise ValueError(
            f"{source}: {places} places and width {width} are not of a square of patches with a class "
            f"token and of {heads} heads"
        )
    found = [_BLOCK.match(name) for name in tensors]
    depth = 1 + max(int(block[1]) for block in found if block)
    hidden = len(tensors["blocks.0.mlp.fc1.weight"])
    usual = (IMAGENET_MEAN, IMAGENET_STD) if scaled else ((0.5,) * channels, (0.5,) * channels)
    mean, std = tuple(about.get("mean", usual[0])), tuple(about.get("std", usual[1]))
    return Config(width, depth, heads, patch, grid * patch, hidden, channels, scaled, mean, std)


def _check(expected: Mapping[str, Tensor], found: Mapping[str, Tensor], source: object) -> None:
    """Raise where a weight is missing, left over or of another shape."""
    missing = [name for name in expected if name not in found]
    left = [name for name in found if name not in expected]
    wrong = [
        f"{name} {tuple(found[name].shape)}, not {tuple(expected[name].shape)}"
        for name in expected
        if name in found and found[name].shape != expected[name].shape
    ]
    parts = (("missing", missing), ("left over", left), ("of another shape", wrong))
    told = "; ".join(f"{words}: {_some(names)}" for words, names in parts if names)
    if told:
        raise ValueError(f"{source} does not hold the weights of one vision transformer; {told}")


def _some(names: Iterable[str]) -> str:
    """The first few names, and how many more there are."""
    several = list(names)
    more = f" and {len(several) - _SHOWN} more" if len(several) > _SHOWN else ""
    return (", ".join(several[:_SHOWN]) or "nothing") + more
