"""A frozen transformer that is told what to do by prompts: tokens of a pool, chosen by each image.

The net of Learning to Prompt (Wang et al. 2022).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate, normalize

from everlearn.nets.head import Head
from everlearn.nets.vit import ViT, narrowed


class Prompted(nn.Module):
    """Prompts, their keys and a head; the transformer is no part of it.

    Args:
        frozen: where it computes and in float32; its weights get no slopes.
        side: images are resized to this.
        pool: how many prompts there are; each has `length` tokens and an image gets `top` of them.
        shared: all images of a training batch get the prompts that most of them chose.
    """

    def __init__(
        self, frozen: ViT, outputs: int, side: int, pool: int, length: int, top: int, shared: bool
    ) -> None:
        """Draw prompts and keys from -1 to 1."""
        super().__init__()
        width = frozen.config.width
        self.prompts = nn.Parameter(torch.empty(pool, length, width).uniform_(-1, 1))
        self.keys = nn.Parameter(torch.empty(pool, width).uniform_(-1, 1))
        self.head = Head(width, outputs)
        self.side, self.top, self.shared = side, top, shared
        # In a tuple, where torch does not look: neither trained, nor moved, nor stored with the rest.
        self._wide = (frozen,)
        self._narrow = (narrowed(frozen) if frozen.pos_embed.is_cuda else frozen,)

    def forward(self, images: Tensor) -> Tensor:
        """(B, outputs)."""
        return self.look(images)[0]

    def look(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs (B, outputs), and how near the chosen keys are: sum of cosines, mean over the batch."""
        (net,) = self._narrow if self.training else self._wide
        tokens = net.tokens(self._fit(images))
        with torch.no_grad():
            query = net.encode(tokens)[:, 0]
        cosines = normalize(query) @ normalize(self.keys).T
        chosen = self.choose(cosines)
        prompts = self._prompts(chosen) + net.pos_embed[:, :1]
        sequence = torch.cat((tokens[:, :1], prompts, tokens[:, 1:]), 1)
        seen = net.encode(sequence)[:, 1 : 1 + prompts.shape[1]].mean(1)
        near = (chosen.sum(1) * cosines).sum() / len(images)
        return self.head(seen), near

    def choose(self, cosines: Tensor) -> Tensor:
        """The prompts of the nearest keys (B, top, pool): a one for each chosen, zeros elsewhere."""
        chosen = _ones(cosines.topk(self.top).indices, len(self.keys))
        if self.shared and self.training:
            votes = chosen.sum((0, 1)) * len(self.keys)
            first = torch.arange(len(self.keys), device=votes.device)  # of equals, the first
            major = _ones((votes - first).topk(self.top).indices, len(self.keys))
            chosen = major.expand(len(cosines), -1, -1)
        return chosen

    def _prompts(self, chosen: Tensor) -> Tensor:
        """Tokens (B, top * length, width) of the chosen prompts.

        By a product: the way back of taking rows adds in an order that differs from run to run.
        """
        return (chosen @ self.prompts.flatten(1)).reshape(len(chosen), -1, self.prompts.shape[2])

    def _fit(self, images: Tensor) -> Tensor:
        if images.shape[2:] == (self.side, self.side):
            return images
        return interpolate(images, (self.side, self.side), mode="bilinear", antialias=True)


def _ones(places: Tensor, count: int) -> Tensor:
    """(..., count): a one at each place."""
    return (places[..., None] == torch.arange(count, device=places.device)).float()
