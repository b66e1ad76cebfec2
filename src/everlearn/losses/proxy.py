"""Losses on cosines between features and class proxies, the rows of a head's weight.

PCR: Lin et al. 2023, "Proxy-based contrastive replay" (arXiv 2304.04408). HPCR: Lin et al. 2023,
"Holistic proxy-based contrastive replay" (arXiv 2309.15038), with temperature and distillation as in the
authors' code and without the anchor-to-sample pairs of the paper.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, log_softmax, normalize

_PERIOD = 500  # iterations
_EPS = 1e-6


def cosines(features: Tensor, weight: Tensor) -> Tensor:
    """Cosines (B, classes) of features (B, D) and proxies (classes, D); divided by tau, they are logits.

    In float64, as all logits: see `ClassHead`.
    """
    return _unit_rows(features) @ _unit_rows(weight).T


def proxy_loss(features: Tensor, weight: Tensor, labels: Tensor, tau: float) -> Tensor:
    """PCR: mean over i of -log exp(cos(f_i, w_y_i) / tau) / sum_j exp(cos(f_i, w_y_j) / tau).

    The sum is over the rows of the batch: a class counts as often as it occurs there, and a class that
    does not occur gets no gradient. Adding log-counts to the logits is the same as indexing proxies row
    by row, but its backward pass is deterministic.
    """
    counts = _counts(labels, len(weight))
    logits = cosines(features, weight) / tau + counts.log()
    return (cross_entropy(logits, labels) + counts[labels].log().mean()).float()


def loss_scale_at(iteration: int, low: float = 0.5625, high: float = 1.8) -> float:
    """HPCR: the factor of the loss in an iteration of a task, a cosine wave that starts at `low`."""
    return low + (high - low) * 0.5 * (1 - math.cos(2 * math.pi * iteration / _PERIOD))


def proxy_distillation(logits: Tensor, stored: Tensor, labels: Tensor) -> Tensor:
    """HPCR: mean squared difference between the logits of replayed images and those stored with them.

    Args:
        logits: (M, classes), cosines divided by tau.
        stored: (M, classes), the same when the images were stored.
        labels: (B,) of the complete batch: a column counts as often as its label occurs.
    """
    counts = _counts(labels, logits.shape[1])
    return ((logits - stored).double().square() @ counts).mean().float() / len(labels)


def sample_distillation(features: Tensor, stored: Tensor, tau: float) -> Tensor:
    """HPCR: mean cross-entropy of the similarities among replayed images under those stored with them.

    The similarities of an image are a softmax over the other images of cosines divided by tau.

    Args:
        features: (M, D) of at least two images.
        stored: (M, D), the same when the images were stored.
    """
    target = _log_similarities(stored, tau).exp()
    diagonal = torch.eye(len(features), dtype=torch.bool, device=features.device)
    # 0 in the diagonal: 0 times -inf would be NaN.
    current = _log_similarities(features, tau).masked_fill(diagonal, 0.0)
    return -(target * current).sum(1).mean().float()


def _log_similarities(features: Tensor, tau: float) -> Tensor:
    """Log-softmax (M, M) of cosines between features, -inf in the diagonal."""
    diagonal = torch.eye(len(features), dtype=torch.bool, device=features.device)
    return log_softmax((cosines(features, features) / tau).masked_fill(diagonal, -torch.inf), 1)


def _counts(labels: Tensor, classes: int) -> Tensor:
    """How often each class occurs, (classes,)."""
    return (labels[:, None] == torch.arange(classes, device=labels.device)).sum(0).double()


def _unit_rows(rows: Tensor) -> Tensor:
    return normalize(rows.double(), eps=_EPS)
