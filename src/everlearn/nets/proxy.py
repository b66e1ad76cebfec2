"""Losses on cosines between features and class proxies, the rows of a head's weight.

PCR: Lin et al. 2023, "Proxy-based contrastive replay" (arXiv 2304.04408). HPCR: Lin et al. 2023,
"Holistic proxy-based contrastive replay" (arXiv 2309.15038), temperature and distillation as in the
authors' code; the anchor-to-sample pairs of the paper are not there.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, log_softmax, normalize

_PERIOD = 500  # iterations
_EPS = 1e-6


def cosines(features: Tensor, weight: Tensor) -> Tensor:
    """Cosines (B, classes) of features (B, D) and proxies (classes, D); over tau, they are logits."""
    return _units(features) @ _units(weight).T


def proxy_loss(features: Tensor, weight: Tensor, labels: Tensor, tau: float) -> Tensor:
    """PCR: mean over i of -log exp(cos(f_i, w_y_i) / tau) / sum_j exp(cos(f_i, w_y_j) / tau).

    The sum is over the rows of the batch. So a class counts as often as it occurs there, and a class
    that does not occur is left alone. Counts in the softmax do the same without picking proxies one
    by one, whose gradients would be added in any order.
    """
    counts = _counts(labels, len(weight))
    logits = cosines(features, weight) / tau + counts.log()
    return cross_entropy(logits, labels) + counts[labels].log().mean()


def tau_at(iteration: int, least: float = 0.5625, most: float = 1.8) -> float:
    """HPCR: what the loss is multiplied by in an iteration of a task; a wave that starts at the least."""
    return least + (most - least) * 0.5 * (1 - math.cos(2 * math.pi * iteration / _PERIOD))


def proxy_distillation(logits: Tensor, stored: Tensor, labels: Tensor) -> Tensor:
    """HPCR: mean squared difference between logits of remembered images and those stored with them.

    Args:
        logits: (M, classes), cosines over tau; stored likewise.
        labels: (B,) of the whole batch: only their columns count, as often as they occur.
    """
    counts = _counts(labels, logits.shape[1])
    return ((logits - stored).square() @ counts).mean() / len(labels)


def sample_distillation(features: Tensor, stored: Tensor, tau: float) -> Tensor:
    """HPCR: mean cross-entropy of how alike remembered images are now, under how alike they were.

    Each row is a softmax over the others of its cosines over tau.

    Args:
        features: (M, D) of two images at least; those stored with them likewise.
    """
    target = _alike(stored, tau).exp()
    own = torch.eye(len(features), dtype=torch.bool, device=features.device)
    now = _alike(features, tau).masked_fill(own, 0.0)  # 0 times -inf would be no number
    return -(target * now).sum(1).mean()


def _alike(features: Tensor, tau: float) -> Tensor:
    """Logarithms (M, M) of softmaxes of cosines between features, -inf for each with itself."""
    own = torch.eye(len(features), dtype=torch.bool, device=features.device)
    return log_softmax((cosines(features, features) / tau).masked_fill(own, -torch.inf), 1)


def _counts(labels: Tensor, classes: int) -> Tensor:
    """How often each class occurs, (classes,)."""
    return (labels[:, None] == torch.arange(classes, device=labels.device)).sum(0).float()


def _units(rows: Tensor) -> Tensor:
    """Rows of length 1, in float32: 16 bits would round cosines that are near one another."""
    return normalize(rows.float(), eps=_EPS)
