"""A frozen transformer steered by prompts: tokens of a pool that each image selects by its features.

The net of Learning to Prompt (Wang et al. 2022).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate, normalize

from everlearn.nets.layers.class_head import ClassHead
from everlearn.nets.vit.vit import ViT, bfloat16_copy


class PromptedViT(nn.Module):
    """Prompts, their keys and a head; the frozen transformer is no submodule.

    Args:
        frozen: on its device and in float32; its weights get no gradients.
        image_size: images are resized to this side.
        pool_size: number of prompts; each has `prompt_length` tokens, and an image gets `top_k` prompts.
        batchwise: give all images of a training batch the prompts that most of them selected.
    """

    def __init__(
        self,
        frozen: ViT,
        outputs: int,
        image_size: int,
        pool_size: int,
        prompt_length: int,
        top_k: int,
        batchwise: bool,
    ) -> None:
        """Draw prompts and keys uniformly from -1 to 1."""
        super().__init__()
        width = frozen.config.width
        self.prompts = nn.Parameter(torch.empty(pool_size, prompt_length, width).uniform_(-1, 1))
        self.keys = nn.Parameter(torch.empty(pool_size, width).uniform_(-1, 1))
        self.head = ClassHead(width, outputs)
        self.image_size = image_size
        self.top_k = top_k
        self.batchwise = batchwise
        # In tuples, so that torch does not register them: neither trained, nor moved, nor saved.
        self._float32 = (frozen,)
        self._bfloat16 = (bfloat16_copy(frozen) if frozen.pos_embed.is_cuda else frozen,)

    def forward(self, images: Tensor) -> Tensor:
        """(B, outputs)."""
        return self.logits_and_key_match(images)[0]

    def logits_and_key_match(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits (B, outputs), and the summed cosines of the selected keys, a mean over images."""
        (net,) = self._bfloat16 if self.training else self._float32
        tokens = net.tokens(self._resize(images))
        with torch.no_grad():
            query = net.encode(tokens)[:, 0]
        cosines = normalize(query) @ normalize(self.keys).T
        selected = self.select(cosines)
        prompts = self._prompt_tokens(selected) + net.pos_embed[:, :1]
        sequence = torch.cat((tokens[:, :1], prompts, tokens[:, 1:]), 1)
        features = net.encode(sequence)[:, 1 : 1 + prompts.shape[1]].mean(1)
        key_match = (selected.sum(1) * cosines).sum() / len(images)
        return self.head(features), key_match

    def select(self, cosines: Tensor) -> Tensor:
        """The prompts of the nearest keys, one-hot, (B, top_k, pool)."""
        selected = _one_hot(cosines.topk(self.top_k).indices, len(self.keys))
        if self.batchwise and self.training:
            votes = selected.sum((0, 1)) * len(self.keys)
            index = torch.arange(len(self.keys), device=votes.device)  # breaks ties by the first
            majority = _one_hot((votes - index).topk(self.top_k).indices, len(self.keys))
            selected = majority.expand(len(cosines), -1, -1)
        return selected

    def _prompt_tokens(self, selected: Tensor) -> Tensor:
        """Tokens (B, top_k * length, width) of the selected prompts.

        A product: the backward pass of indexing adds in an order that differs from run to run.
        """
        return (selected @ self.prompts.flatten(1)).reshape(
            len(selected), -1, self.prompts.shape[2]
        )

    def _resize(self, images: Tensor) -> Tensor:
        size = (self.image_size, self.image_size)
        if images.shape[2:] == size:
            return images
        return interpolate(images, size, mode="bilinear", antialias=True)


def _one_hot(indices: Tensor, count: int) -> Tensor:
    """(..., count)."""
    return (indices[..., None] == torch.arange(count, device=indices.device)).float()
