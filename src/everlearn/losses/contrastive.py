"""The contrastive loss of Dziadzio et al. 2023 (arXiv 2312.16731, appendix A.4), and search by cosine."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize, pad


def contrastive_loss(
    images: Tensor,
    labels: Tensor,
    exemplars: Tensor,
    classes: Tensor,
    temperature: float,
    negatives: Tensor | None = None,
    exemplar_weight: float = 1.0,
) -> Tensor:
    """Mean over images of l1 + weight * l2, with one exemplar per class and every image's class among them.

    Args:
        images: embeddings (B, D), not normalised, of the classes `labels` (B,).
        exemplars: embeddings (C, D) of the classes `classes` (C,), all different.
        negatives: embeddings (K, D) of exemplars of further classes.
        exemplar_weight: of l2, which repels exemplars from each other; the paper has 1.
    """
    z = normalize(images)
    e = normalize(exemplars)
    extra = z[:0] if negatives is None else normalize(negatives)
    same_class = (labels[:, None] == classes).to(z.dtype)
    positive = (z @ e.T * same_class).sum(1)
    image_term = _term(positive, z, labels, extra, temperature)
    exemplar_term = _term(torch.ones_like(e[:, 0]), e, classes, extra, temperature)
    return (image_term + exemplar_weight * (same_class @ exemplar_term)).mean()


def _term(
    positive: Tensor, rows: Tensor, labels: Tensor, extra: Tensor, temperature: float
) -> Tensor:
    """-log of exp(positive) over the sum of all negatives (N,); 0 where there is none.

    The positive is not in the sum, as in the paper: a term may be negative.
    """
    same = labels[:, None] == labels
    excluded = torch.cat([same, torch.zeros_like(same[:, :1]).expand(-1, len(extra))], 1)
    logits = rows @ torch.cat([rows, extra]).T / temperature
    log_negatives = logits.masked_fill(excluded, -torch.inf).logsumexp(1)
    return torch.where(excluded.all(1), 0.0, log_negatives - positive / temperature)


def nearest_keys(
    queries: Tensor, keys: Tensor, labels: Tensor, excluded: Tensor, k: int
) -> tuple[Tensor, Tensor]:
    """Return the labels and distances, 1 - cosine, of the k nearest keys of each query: (Q, k) each.

    Where there are fewer, the label is -1 and the distance infinite.

    Args:
        queries: unit vectors (Q, D).
        keys: unit vectors (N, D) with labels (N,).
        excluded: (N,) which keys to leave out.
    """
    distances = (1.0 - queries @ keys.T).clamp(min=0.0).masked_fill(excluded, torch.inf)
    nearest, indices = distances.topk(min(k, len(keys)), dim=1, largest=False)
    found = labels[indices].masked_fill(nearest.isinf(), -1)
    padding = (0, k - nearest.shape[1])
    return pad(found, padding, value=-1), pad(nearest, padding, value=torch.inf)
