"""A plain vision transformer (Dosovitskiy et al. 2021); its weights have the names that timm gives them."""

from __future__ import annotations

from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from everlearn.nets.vit.config import CONFIGS, Config
from everlearn.nets.vit.layers import EPS, Block, Patches

__all__ = ["CONFIGS", "Config", "ViT", "narrowed"]

_STD = 0.02


class ViT(nn.Module):
    """Patches and a class token, through blocks of attention.

    The sum that runs through the blocks stays in float32; products are in the type of their weights.
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
        # Not among the weights, whose names are timm's.
        self.register_buffer("mean", torch.tensor(config.mean)[:, None, None], persistent=False)
        self.register_buffer("std", torch.tensor(config.std)[:, None, None], persistent=False)
        _start(self)

    def tokens(self, images: Tensor) -> Tensor:
        """The class token, then patches from left to right and down, with their places added.

        Images (B, C, H, W) from 0 to 1; sides are whole patches. Result (B, 1 + patches, width).
        """
        seen = (match_channels(images, self.config.channels) - self.mean) / self.std
        patches = self.patch_embed(seen)
        rows, columns = patches.shape[2:]
        sequence = patches.flatten(2).transpose(1, 2).float()
        first = self.cls_token.float().expand(len(images), -1, -1)
        return torch.cat((first, sequence), 1) + self.places(rows, columns)

    def places(self, rows: int, columns: int) -> Tensor:
        """What is added to the tokens of a grid; interpolated when the grid is another than its own."""
        known, side = self.pos_embed.float(), self.config.grid
        if (rows, columns) == (side, side):
            return known
        plane = known[:, 1:].reshape(1, side, side, -1).permute(0, 3, 1, 2)
        plane = interpolate(plane, (rows, columns), mode="bicubic", antialias=True)
        return torch.cat((known[:, :1], plane.flatten(2).transpose(1, 2)), 1)

    def encode(self, sequence: Tensor) -> Tensor:
        """Send any tokens (B, N, width) through the blocks and the last normalisation."""
        for block in self.blocks:
            sequence = block(sequence)
        out: Tensor = self.norm(sequence)
        return out

    def forward(self, images: Tensor) -> Tensor:
        """The class token in the end, (B, width)."""
        return self.encode(self.tokens(images))[:, 0]


def match_channels(images: Tensor, channels: int) -> Tensor:
    """Repeat grey where weights want colours; take the mean of colours where they want grey."""
    if images.shape[1] == channels:
        return images
    if channels == 1:
        return images.mean(1, keepdim=True)
    return images.expand(-1, channels, -1, -1)


def narrowed(net: ViT) -> ViT:
    """A copy whose products are in bfloat16; normalisations, places and the class token stay wide."""
    copy = deepcopy(net)
    for layer in copy.modules():
        if isinstance(layer, (nn.Linear, nn.Conv2d)):
            layer.to(torch.bfloat16)
    return copy


def _start(net: ViT) -> None:
    """Draw small weights, as is usual for transformers."""
    for layer in net.modules():
        if isinstance(layer, nn.Linear):
            nn.init.trunc_normal_(layer.weight, std=_STD)
            nn.init.zeros_(layer.bias)
    nn.init.trunc_normal_(net.pos_embed, std=_STD)
    nn.init.trunc_normal_(net.cls_token, std=_STD)
