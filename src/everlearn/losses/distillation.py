"""Knowledge distillation (Hinton et al. 2015, arXiv 1503.02531)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import log_softmax


def distillation_loss(logits: Tensor, teacher: Tensor, among: Tensor, temperature: float) -> Tensor:
    """Mean over images of KL(teacher || student) over some classes, at a temperature.

    Args:
        logits: of the student, (B, classes).
        teacher: logits of the teacher, (B, classes).
        among: (classes,) which classes the softmax is over, at least one.
    """
    mask = torch.where(among, 0.0, -torch.inf)
    log_p = log_softmax(teacher / temperature + mask, 1).masked_fill(~among, 0.0)
    log_q = log_softmax(logits / temperature + mask, 1).masked_fill(~among, 0.0)
    p = log_p.exp() * among
    return (p * (log_p - log_q)).sum(1).mean()
