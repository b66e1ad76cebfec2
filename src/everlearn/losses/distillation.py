"""Distillation: of softened predictions (Hinton et al. 2015, arXiv 1503.02531), and of stored logits."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import log_softmax

# The least float32: minus infinity would look like a learner that diverged.
NOT_STORED = torch.finfo(torch.float32).min


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
    return (p * (log_p - log_q)).sum(1).mean().float()


def logit_distance(logits: Tensor, stored: Tensor) -> Tensor:
    """Mean over images of the mean squared difference over the classes that were known when stored.

    Args:
        logits: (B, classes).
        stored: (B, classes), NOT_STORED for classes that were not known then; at least one of each image
            was.
    """
    known = stored != NOT_STORED
    squares = torch.where(known, logits - stored, 0.0).square()
    return (squares.sum(1) / known.sum(1)).mean().float()
