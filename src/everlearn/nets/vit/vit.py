"""A plain vision transformer (Dosovitskiy et al. 2021); its weights have the names of timm."""

from __future__ import annotations

from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from everlearn.nets.vit.config import Config
from everlearn.nets.vit.layers import EPS, Block, Patches

_STD = 0.02


class ViT(nn.Module):
    """Patches and a class token, through transformer blocks.

    The residual stream stays in float32; products are in the dtype of their weights.
    """

    def __init__(self, config: Config) -> None:
        """Start from random weights."""
        super().__init__()
        self.config = config
        self.cls_token = nn.Parameter(torch.zeros(1, 1, config.width))
        self.pos_embed = nn.Parameter(torch.zeros(1, 1 + config.grid**2, config.width))
        self.patch_embed = Patches(config)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.depth))
        self.norm = nn.LayerNorm(config.width, EPS)
        self.mean: Tensor
        self.std: Tensor
        # Not persistent: timm has no such weights.
        self.register_buffer("mean", torch.tensor(config.mean)[:, None, None], persistent=False)
        self.register_buffer("std", torch.tensor(config.std)[:, None, None], persistent=False)
        _draw_weights(self)

    def tokens(self, images: Tensor) -> Tensor:
        """Return the class token and the patches in row-major order, with position embeddings added.

        Images (B, C, H, W) from 0 to 1, with sides divisible by the patch, give (B, 1 + patches, width).
        """
        standardized = (match_channels(images, self.config.channels) - self.mean) / self.std
        patches = self.patch_embed(standardized)
        rows, columns = patches.shape[2:]
        sequence = patches.flatten(2).transpose(1, 2).float()
        cls_token = self.cls_token.float().expand(len(images), -1, -1)
        return torch.cat((cls_token, sequence), 1) + self.position_embeddings(rows, columns)

    def position_embeddings(self, rows: int, columns: int) -> Tensor:
        """Return the position embeddings of a grid, interpolated where it differs from the trained one."""
        embeddings = self.pos_embed.float()
        side = self.config.grid
        if (rows, columns) == (side, side):
            return embeddings
        grid = embeddings[:, 1:].reshape(1, side, side, -1).permute(0, 3, 1, 2)
        grid = interpolate(grid, (rows, columns), mode="bicubic", antialias=True)
        return torch.cat((embeddings[:, :1], grid.flatten(2).transpose(1, 2)), 1)

    def encode(self, sequence: Tensor) -> Tensor:
        """Apply the blocks and the last normalisation to any tokens (B, N, width)."""
        for block in self.blocks:
            sequence = block(sequence)
        out: Tensor = self.norm(sequence)
        return out

    def forward(self, images: Tensor) -> Tensor:
        """Return the final class token, (B, width)."""
        return self.encode(self.tokens(images))[:, 0]


def match_channels(images: Tensor, channels: int) -> Tensor:
    """Repeat grey images for a net of colour images; average colours for a net of grey ones."""
    if images.shape[1] == channels:
        return images
    if channels == 1:
        return images.mean(1, keepdim=True)
    return images.expand(-1, channels, -1, -1)


def bfloat16_copy(net: ViT) -> ViT:
    """Return a copy with linear and patch layers in bfloat16; everything else stays in float32."""
    copy = deepcopy(net)
    for layer in copy.modules():
        if isinstance(layer, (nn.Linear, nn.Conv2d)):
            layer.to(torch.bfloat16)
    return copy


def _draw_weights(net: ViT) -> None:
    """Draw truncated normal weights, as is common for transformers."""
    for layer in net.modules():
        if isinstance(layer, nn.Linear):
            nn.init.trunc_normal_(layer.weight, std=_STD)
            nn.init.zeros_(layer.bias)
    nn.init.trunc_normal_(net.pos_embed, std=_STD)
    nn.init.trunc_normal_(net.cls_token, std=_STD)
