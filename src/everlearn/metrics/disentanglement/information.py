"""Mutual information of codes and factors, and two metrics computed from it: MIG and modularity.

By default information is estimated from bins: 20 of equal width for a code and for a continuous or
circular factor, the values themselves for a discrete one. The estimate is not corrected for bias: with A
and B bins filled and P points it is about (A - 1) (B - 1) / 2P nats too large, 0.09 for 20 bins each and
2,000 points. This is the same for every code, so most of it cancels when codes are compared. The other
estimator, "neighbours", needs no bins; its cost grows with the square of the points.
"""

from __future__ import annotations

import numpy as np
from scipy.special import entr

from everlearn.metrics.disentanglement.neighbours import mutual_information
from everlearn.metrics.disentanglement.points import Factor, Points, top_gap
from everlearn.metrics.measured import Floats, Ints

ESTIMATORS = ("bins", "neighbours")


def information(points: Points, estimator: str = "bins", seed: int = 0) -> Floats:
    """Return the mutual information of every code and factor, (L, K), in nats.

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
    """Return by how much the best code's information of a factor exceeds the second best's, normalised.

    The information is divided by the entropy of the factor's labels. A continuous factor without bins
    has no such entropy: 1 - exp(-2 I) is used instead, the squared correlation of Gaussian variables
    (Linfoot 1957).
    """
    table = information(points, estimator, seed)
    shares = [
        column / entropy(factor.labels)
        if estimator == "bins" or factor.type == "discrete"
        else 1 - np.exp(-2 * column)
        for factor, column in zip(points.factors, table.T, strict=True)
    ]
    names = (factor.name for factor in points.factors)
    return dict(zip(names, top_gap(np.stack(shares, axis=1)).tolist(), strict=True))


def modularity(points: Points, estimator: str = "bins", seed: int = 0) -> float:
    """Average over codes how far each is informative of one factor only (Ridgeway and Mozer 2018).

    1 - sum_{k != max} I_lk^2 / (I_max^2 (K - 1)); 0 for a code without information, such as one that
    never varies.
    """
    squares = information(points, estimator, seed) ** 2
    best = squares.max(axis=1)
    others = (squares.sum(axis=1) - best) / (squares.shape[1] - 1)
    return float(np.where(best > 0, 1 - others / np.where(best > 0, best, 1.0), 0.0).mean())


def entropy(labels: Ints) -> float:
    """Return the empirical entropy of labels in nats."""
    return float(entr(np.bincount(labels) / len(labels)).sum())


def binned_information(first: Ints, second: Ints) -> float:
    """Return the empirical mutual information of two arrays of labels in nats."""
    height = int(first.max()) + 1
    width = int(second.max()) + 1
    joint = np.bincount(first * width + second, minlength=height * width).reshape(height, width)
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    filled = joint > 0
    # Counts are integers, so that independent labels give exactly 0.
    terms = joint[filled] * np.log(joint[filled] * len(first) / independent[filled])
    return max(0.0, float(terms.sum() / len(first)))


def _of_factor(points: Points, factor: Factor, estimator: str, seed: int) -> Floats:
    """Return the information of every code about one factor, (L,)."""
    if estimator == "bins":
        return np.array([binned_information(code, factor.labels) for code in points.bins.T])
    values = factor.values
    return np.array([mutual_information(c, values, factor.type, seed=seed) for c in points.codes.T])
