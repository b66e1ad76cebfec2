"""The layers of a vision transformer; the names of their weights are those of timm."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import gelu, scaled_dot_product_attention

from everlearn.nets.vit.config import Config

EPS = 1e-6
# The backward pass of flash attention adds the parts of 128-key blocks in any order, which for two blocks
# makes no difference.
_DETERMINISTIC_TOKENS = 256


class Patches(nn.Module):
    """Splits an image into patches and maps each to a token."""

    def __init__(self, config: Config) -> None:
        """Start from random weights."""
        super().__init__()
        self.proj = nn.Conv2d(config.channels, config.width, config.patch, config.patch)

    def forward(self, images: Tensor) -> Tensor:
        """(B, width, rows, columns)."""
        out: Tensor = self.proj(images.to(self.proj.weight.dtype))
        return out


class Block(nn.Module):
    """Attention among tokens, then an MLP on each token, both with a residual connection."""

    def __init__(self, config: Config) -> None:
        """Start from random weights."""
        super().__init__()
        self.norm1 = nn.LayerNorm(config.width, EPS)
        self.attn = Attention(config)
        self.ls1 = LayerScale(config.width) if config.scaled else nn.Identity()
        self.norm2 = nn.LayerNorm(config.width, EPS)
        self.mlp = Mlp(config)
        self.ls2 = LayerScale(config.width) if config.scaled else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """(B, N, width) to the same."""
        x = x + self.ls1(self.attn(self.norm1(x)))
        out: Tensor = x + self.ls2(self.mlp(self.norm2(x)))
        return out


class Attention(nn.Module):
    """Multi-head attention; queries, keys and values come from one product."""

    def __init__(self, config: Config) -> None:
        """Start from random weights."""
        super().__init__()
        self.heads = config.heads
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.proj = nn.Linear(config.width, config.width)

    def forward(self, x: Tensor) -> Tensor:
        """(B, N, width) to the same."""
        batch, tokens, width = x.shape
        qkv: Tensor = self.qkv(x.to(self.qkv.weight.dtype))
        per_head = qkv.reshape(batch, tokens, 3, self.heads, width // self.heads)
        q, k, v = per_head.permute(2, 0, 3, 1, 4).unbind(0)
        with sdpa_kernel(_deterministic_kernels(q)):
            attended = scaled_dot_product_attention(q, k, v)
        out: Tensor = self.proj(attended.transpose(1, 2).reshape(batch, tokens, width))
        return out


def _deterministic_kernels(q: Tensor) -> list[SDPBackend]:
    """The attention kernels that give the same bits each time; all do in the forward pass."""
    if not q.requires_grad:
        return [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
    short = q.shape[2] <= _DETERMINISTIC_TOKENS
    return [SDPBackend.FLASH_ATTENTION, SDPBackend.MATH] if short else [SDPBackend.MATH]


class Mlp(nn.Module):
    """Two layers, the same for each token."""

    def __init__(self, config: Config) -> None:
        """Start from random weights."""
        super().__init__()
        self.fc1 = nn.Linear(config.width, config.hidden)
        self.fc2 = nn.Linear(config.hidden, config.width)

    def forward(self, x: Tensor) -> Tensor:
        """(B, N, width) to the same."""
        out: Tensor = self.fc2(gelu(self.fc1(x.to(self.fc1.weight.dtype))))
        return out


class LayerScale(nn.Module):
    """A learned factor per channel (Touvron et al. 2021)."""

    def __init__(self, width: int) -> None:
        """Start with 1e-5."""
        super().__init__()
        self.gamma = nn.Parameter(torch.full((width,), 1e-5))

    def forward(self, x: Tensor) -> Tensor:
        """(B, N, width) to the same."""
        return x * self.gamma
