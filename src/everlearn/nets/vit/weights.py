"""Load and save the weights of a vision transformer."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from everlearn.nets.seeded import seeded
from everlearn.nets.vit.config import IMAGENET_MEAN, IMAGENET_STD, Config
from everlearn.nets.vit.files import read_weights
from everlearn.nets.vit.names import to_timm
from everlearn.nets.vit.vit import ViT
from everlearn.nets.weights import check_weights, list_some, save_weights

_HEAD_WIDTH = 64  # of all common transformers: ViT-Ti to ViT-L, DeiT, DINO
_BLOCK = re.compile(r"blocks\.(\d+)\.")


class LoadedViT(NamedTuple):
    """A transformer with its weights, and what their file says about them."""

    net: ViT
    about: dict[str, Any]


def load_vit(source: str | Path) -> LoadedViT:
    """Build the transformer of a weights file; raise where weights are missing."""
    weights = read_weights(source)
    tensors = to_timm(weights.tensors)
    config = find_config(tensors, weights.about, source)
    with seeded(0):  # the random weights are overwritten
        net = ViT(config)
    check_weights(net.state_dict(), tensors, source, "vision transformer")
    net.load_state_dict(tensors)
    return LoadedViT(net, weights.about)


def save_vit(path: Path, net: ViT, about: dict[str, Any]) -> Path:
    """Write weights and configuration as .npz, atomically."""
    return save_weights(path, net.state_dict(), {**about, "config": asdict(net.config)})


def find_config(
    tensors: Mapping[str, Tensor], about: Mapping[str, Any], source: object = "these"
) -> Config:
    """Return the configuration that a weights file contains, or infer it from the shapes."""
    if "config" in about:
        config = about["config"]
        return Config(**config | {name: tuple(config[name]) for name in ("mean", "std")})
    needed = ("pos_embed", "patch_embed.proj.weight", "blocks.0.mlp.fc1.weight")
    missing = [name for name in needed if name not in tensors]
    if missing:
        raise ValueError(
            f"{source} holds no weights of a vision transformer: it lacks {', '.join(missing)}; found "
            f"{list_some(tensors)}"
        )
    return _infer_config(tensors, about, source)


def _infer_config(
    tensors: Mapping[str, Tensor], about: Mapping[str, Any], source: object
) -> Config:
    _, positions, width = tensors["pos_embed"].shape
    _, channels, patch, _ = tensors["patch_embed.proj.weight"].shape
    grid = math.isqrt(positions - 1)
    scaled = "blocks.0.ls1.gamma" in tensors
    heads = about.get("heads", max(1, width // _HEAD_WIDTH))
    if grid**2 != positions - 1 or width % heads:
        raise ValueError(
            f"{source}: {positions} positions and width {width} do not fit a square grid of patches with "
            f"a class token and {heads} heads"
        )
    blocks = [_BLOCK.match(name) for name in tensors]
    depth = 1 + max(int(block[1]) for block in blocks if block)
    hidden = len(tensors["blocks.0.mlp.fc1.weight"])
    mean = tuple(about.get("mean", IMAGENET_MEAN if scaled else (0.5,) * channels))
    std = tuple(about.get("std", IMAGENET_STD if scaled else (0.5,) * channels))
    return Config(width, depth, heads, patch, grid * patch, hidden, channels, scaled, mean, std)
