"""Negative replay (Graffieti et al. 2022, arXiv 2204.05842): replayed samples train current classes only.

They teach what the current classes are not, and nothing about the old ones. Setting the old logits to -inf
would not do: it changes the softmax.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy


def negative_loss(
    logits: Tensor,
    targets: Tensor,
    replayed: Tensor,
    current: Tensor,
    seen: Tensor | None = None,
) -> Tensor:
    """Mean cross-entropy, in which replayed samples give gradients to the logits of current classes only.

    A logit's gradient stays softmax - one-hot, or is 0; the value is that of plain cross-entropy.

    Args:
        logits: (B, classes).
        targets: (B,) the correct column.
        replayed: (B,) which samples are replayed.
        current: (classes,) which classes the current task has.
        seen: (classes,) which classes the softmax is over; all by default.
    """
    detached = replayed[:, None] & ~current
    logits = torch.where(detached, logits.detach(), logits)
    allowed = logits if seen is None else logits.masked_fill(~seen, -torch.inf)
    return cross_entropy(allowed, targets).float()
