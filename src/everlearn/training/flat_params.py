"""FlatParams: numbers for some weights, in one vector and in the shapes of the weights."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class FlatParams:
    """As many numbers as some weights have, in one vector.

    Args:
        padding: the numbers of every weight start at a multiple of this; zeros fill up what is between.

    Attributes:
        flat: the vector, so that one kernel serves all weights.
        views: the same memory in the shapes and strides of the weights.
    """

    def __init__(self, weights: Sequence[Tensor], padding: int = 1) -> None:
        """Start with zeros."""
        sizes = [-(-weight.numel() // padding) * padding for weight in weights]
        self.flat = torch.zeros(sum(sizes), device=weights[0].device)
        self.views = [
            piece.as_strided(weight.shape, weight.stride())
            for piece, weight in zip(torch.split(self.flat, sizes), weights, strict=True)
        ]

    @torch.no_grad()
    def copy_from(self, tensors: Sequence[Tensor]) -> Tensor:
        """Copy tensors in the shapes of the weights; return the vector."""
        torch._foreach_copy_(self.views, list(tensors))
        return self.flat
