"""Weights of a vision transformer: read and checked, written."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from everlearn.nets.seeded import seeded
from everlearn.nets.vit import Config, ViT
from everlearn.nets.vit.config import IMAGENET_MEAN, IMAGENET_STD
from everlearn.nets.vit.files import read
from everlearn.nets.vit.names import to_timm
from everlearn.nets.weights import check_weights, save_weights, some

_HEAD_WIDTH = 64  # of all usual transformers: ViT-Ti to ViT-L, DeiT, DINO
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
    check_weights(net.state_dict(), tensors, source, "vision transformer")
    net.load_state_dict(tensors)
    return Loaded(net, found.about)


def save_vit(path: Path, net: ViT, about: dict[str, Any]) -> Path:
    """Write weights as .npz, with what they are of; the file is whole or not there."""
    return save_weights(path, net.state_dict(), {**about, "config": asdict(net.config)})


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
            f"{some(tensors)}"
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
