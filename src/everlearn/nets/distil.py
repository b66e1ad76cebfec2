"""Distillation: let a net answer as another one did (Hinton et al. 2015, arXiv 1503.02531)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import log_softmax


def divergence(logits: Tensor, teacher: Tensor, among: Tensor, temperature: float) -> Tensor:
    """Mean over images of KL(teacher || student) among some classes, at a temperature.

    Args:
        logits: (B, classes), likewise teacher.
        among: (classes,) which classes take part, one at least.
    """
    shut = torch.where(among, 0.0, -torch.inf)
    log_p = log_softmax(teacher / temperature + shut, 1).masked_fill(~among, 0.0)
    log_q = log_softmax(logits / temperature + shut, 1).masked_fill(~among, 0.0)
    p = log_p.exp() * among
    return (p * (log_p - log_q)).sum(1).mean()
