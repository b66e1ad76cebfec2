"""What each code tells of each factor, and the two numbers made of it: MIG and modularity.

By default information is counted in bins: 20 of equal width for a code and for a continuous or
circular factor, the values themselves for a discrete one. The count is plain, without a correction:
with A and B bins filled and P points it is about (A - 1) (B - 1) / 2P nats too large, 0.09 for 20
bins each and 2,000 points, for every code alike, so that most of it goes when codes are compared.
The other estimator, "neighbours", needs no bins; its cost grows with the square of the points.
"""

from __future__ import annotations

import numpy as np

from everlearn.metrics.disentanglement.neighbours import mutual_information
from everlearn.metrics.disentanglement.points import Factor, Points, top_gap
from everlearn.metrics.rows import Floats, Ints

ESTIMATORS = ("bins", "neighbours")


def information(points: Points, estimator: str = "bins", seed: int = 0) -> Floats:
    """Mutual information of every code and factor, (L, K), nats.

    Args:
        seed: of the order of equal values among neighbours.
    """
    if estimator not in ESTIMATORS:
        raise ValueError(f"unknown estimator {estimator!r}; known: {', '.join(ESTIMATORS)}")
    columns = [_of_factor(points, factor, estimator, seed) for factor in points.factors]
    return np.stack(columns, axis=1)


def mig(points: Points, estimator: str = "bins", seed: int = 0) -> float:
    """Mutual information gap (Chen et al. 2018), averaged over the factors."""
    return float(np.mean(list(mig_by_factor(points, estimator, seed).values())))


def mig_by_factor(points: Points, estimator: str = "bins", seed: int = 0) -> dict[str, float]:
    """How much more of a factor the best code knows than the second best, as a share of it all.

    The share is I / H with H the entropy of the factor's labels. A continuous factor without bins
    has no such entropy: there it is 1 - exp(-2 I), which is the squared correlation of Gaussian
    numbers (Linfoot 1957).
    """
    table = information(points, estimator, seed)
    shares = [
        column / entropy(factor.labels)
        if estimator == "bins" or factor.kind == "discrete"
        else 1 - np.exp(-2 * column)
        for factor, column in zip(points.factors, table.T, strict=True)
    ]
    names = (factor.name for factor in points.factors)
    return dict(zip(names, top_gap(np.stack(shares, axis=1)).tolist(), strict=True))


def modularity(points: Points, estimator: str = "bins", seed: int = 0) -> float:
    """How far each code tells of one factor alone (Ridgeway and Mozer 2018), averaged over the codes.

    1 - sum_{k != max} I_lk^2 / (I_max^2 (K - 1)); 0 for a code that tells of none, such as one that
    never varies.
    """
    squares = information(points, estimator, seed) ** 2
    best = squares.max(axis=1)
    others = (squares.sum(axis=1) - best) / (squares.shape[1] - 1)
    return float(np.where(best > 0, 1 - others / np.where(best > 0, best, 1.0), 0.0).mean())


def entropy(labels: Ints) -> float:
    """Entropy of labels as they are spread here, nats."""
    counts = np.bincount(labels)
    shares = counts[counts > 0] / len(labels)
    return float(-(shares * np.log(shares)).sum())


def binned_information(one: Ints, other: Ints) -> float:
    """Mutual information of two rows of labels as they are spread here, nats."""
    height, width = int(one.max()) + 1, int(other.max()) + 1
    joint = np.bincount(one * width + other, minlength=height * width).reshape(height, width)
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    met = joint > 0
    # Counts are whole, so that labels that say nothing give exactly 0.
    terms = joint[met] * np.log(joint[met] * len(one) / apart[met])
    return max(0.0, float(terms.sum() / len(one)))


def _of_factor(points: Points, factor: Factor, estimator: str, seed: int) -> Floats:
    """What every code tells of one factor, (L,)."""
    if estimator == "bins":
        return np.array([binned_information(code, factor.labels) for code in points.bins.T])
    values = factor.values
    return np.array([mutual_information(c, values, factor.kind, seed=seed) for c in points.codes.T])
