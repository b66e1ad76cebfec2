"""Naive negative replay (Graffieti et al. 2022, arXiv 2204.05842): old samples teach no old class.

They only tell what the current classes are not. A logit of -inf would not do: it changes the softmax.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy


def negative_loss(
    logits: Tensor,
    units: Tensor,
    replayed: Tensor,
    current: Tensor,
    met: Tensor | None = None,
) -> Tensor:
    """Mean cross-entropy, of which replayed samples move the logits of current classes only.

    A logit's slope stays softmax - one-hot, or is 0; so the value is that of plain cross-entropy.

    Args:
        logits: (B, classes).
        units: (B,) which column is right.
        replayed: (B,) which samples are old.
        current: (classes,) which classes the current task has.
        met: (classes,) which classes take part in the softmax; all if not told.
    """
    held = replayed[:, None] & ~current
    found = torch.where(held, logits.detach(), logits)
    return cross_entropy(found if met is None else found.masked_fill(~met, -torch.inf), units)
