"""Weights by the names of `transformers` (ViTModel), brought to those of timm."""

from __future__ import annotations

import re

import torch
from torch import Tensor

Tensors = dict[str, Tensor]

_TOP = {
    "embeddings.cls_token": "cls_token",
    "embeddings.position_embeddings": "pos_embed",
    "embeddings.patch_embeddings.projection.weight": "patch_embed.proj.weight",
    "embeddings.patch_embeddings.projection.bias": "patch_embed.proj.bias",
    "layernorm.weight": "norm.weight",
    "layernorm.bias": "norm.bias",
}
_BLOCK = {
    "layernorm_before": "norm1",
    "attention.output.dense": "attn.proj",
    "layernorm_after": "norm2",
    "intermediate.dense": "mlp.fc1",
    "output.dense": "mlp.fc2",
}
_IN_BLOCK = re.compile(r"encoder\.layer\.(\d+)\.(.+)\.(weight|bias)")
_QUERY = re.compile(r"encoder\.layer\.(\d+)\.attention\.attention\.query\.(weight|bias)")
# What answers with the classes of pre-training; a frozen net is not asked for those.
_HEADS = ("head.", "classifier.", "pooler.", "pre_logits.")


def to_timm(tensors: Tensors) -> Tensors:
    """Weights of either naming by the names of timm, without heads; unknown names stay as they are."""
    bare = {name.removeprefix("vit."): tensor for name, tensor in tensors.items()}
    body = {name: tensor for name, tensor in bare.items() if not name.startswith(_HEADS)}
    return {_rename(name): tensor for name, tensor in _join(body).items()}


def _join(tensors: Tensors) -> Tensors:
    """Put queries, keys and values into one matrix, in this order, where all three are there."""
    out = dict(tensors)
    for name in tensors:
        found = _QUERY.fullmatch(name)
        three = [name.replace(".query.", f".{part}.") for part in ("query", "key", "value")]
        if found and all(part in out for part in three):
            joined = torch.cat([out.pop(part) for part in three])
            out[f"blocks.{found[1]}.attn.qkv.{found[2]}"] = joined
    return out


def _rename(name: str) -> str:
    found = _IN_BLOCK.fullmatch(name)
    if found and found[2] in _BLOCK:
        return f"blocks.{found[1]}.{_BLOCK[found[2]]}.{found[3]}"
    return _TOP.get(name, name)
