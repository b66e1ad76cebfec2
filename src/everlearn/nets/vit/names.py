"""Convert the weight names of `transformers` (ViTModel) to those of timm."""

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
# The classifier of pre-training, which a frozen net does not use.
_HEADS = ("head.", "classifier.", "pooler.", "pre_logits.")


def to_timm(tensors: Tensors) -> Tensors:
    """Rename weights of either naming to timm's, without heads; unknown names stay as they are."""
    bare = {name.removeprefix("vit."): tensor for name, tensor in tensors.items()}
    body = {name: tensor for name, tensor in bare.items() if not name.startswith(_HEADS)}
    return {_rename(name): tensor for name, tensor in _join_qkv(body).items()}


def _join_qkv(tensors: Tensors) -> Tensors:
    """Join queries, keys and values into one matrix, in this order, where all three are present."""
    out = dict(tensors)
    for name in tensors:
        match = _QUERY.fullmatch(name)
        parts = [name.replace(".query.", f".{part}.") for part in ("query", "key", "value")]
        if match and all(part in out for part in parts):
            joined = torch.cat([out.pop(part) for part in parts])
            out[f"blocks.{match[1]}.attn.qkv.{match[2]}"] = joined
    return out


def _rename(name: str) -> str:
    match = _IN_BLOCK.fullmatch(name)
    if match and match[2] in _BLOCK:
        return f"blocks.{match[1]}.{_BLOCK[match[2]]}.{match[3]}"
    return _TOP.get(name, name)
