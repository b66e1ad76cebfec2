"""The contrastive loss of Dziadzio et al. 2023 (arXiv 2312.16731, appendix A.4), and search by cosine."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize, pad


def contrast(
    images: Tensor,
    labels: Tensor,
    exemplars: Tensor,
    classes: Tensor,
    temperature: float,
    old: Tensor | None = None,
) -> Tensor:
    """Mean over images of l1 + l2; one exemplar a class, and every image's class among them.

    Args:
        images: vectors (B, D) of any length, of the classes `labels` (B,).
        exemplars: vectors (C, D), of the classes `classes` (C,), all different.
        old: vectors (K, D) of further exemplars of other classes, to keep away from.
    """
    z, e = normalize(images), normalize(exemplars)
    further = z[:0] if old is None else normalize(old)
    own = (labels[:, None] == classes).to(z.dtype)
    positive = (z @ e.T * own).sum(1)
    first = _term(positive, z, labels, further, temperature)
    second = _term(torch.ones_like(e[:, 0]), e, classes, further, temperature)
    return (first + own @ second).mean()


def _term(
    positive: Tensor, rows: Tensor, labels: Tensor, further: Tensor, temperature: float
) -> Tensor:
    """-log of exp(positive) over the sum of all of other classes (N,); 0 where there is none.

    The positive is not in the sum, as in the paper: a term may be negative.
    """
    same = labels[:, None] == labels
    shut = torch.cat([same, torch.zeros_like(same[:, :1]).expand(-1, len(further))], 1)
    products = rows @ torch.cat([rows, further]).T / temperature
    crowd = products.masked_fill(shut, -torch.inf).logsumexp(1)
    return torch.where(shut.all(1), 0.0, crowd - positive / temperature)


def closest(
    queries: Tensor, keys: Tensor, labels: Tensor, shut: Tensor, k: int
) -> tuple[Tensor, Tensor]:
    """The labels and distances, 1 - cosine, of the k nearest keys of each query: (Q, k) each.

    Where there are fewer, the label is -1 and the distance infinite.

    Args:
        queries: (Q, D) of length 1, likewise keys (N, D), which have labels (N,).
        shut: (N,) which keys are left out.
    """
    distances = (1.0 - queries @ keys.T).clamp(min=0.0).masked_fill(shut, torch.inf)
    least, places = distances.topk(min(k, len(keys)), dim=1, largest=False)
    found = labels[places].masked_fill(least.isinf(), -1)
    short = (0, k - least.shape[1])
    return pad(found, short, value=-1), pad(least, short, value=torch.inf)
