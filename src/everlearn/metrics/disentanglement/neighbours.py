"""Mutual information without bins, from the distances between nearest neighbours, in nats.

For a continuous or circular factor, estimator 1 of Kraskov, Stögbauer and Grassberger 2004; for a
discrete one, that of Ross 2014. They detect any dependence, whereas a Gaussian copula detects monotone
ones only, and their bias does not grow with a number of bins. Both variables are first replaced by
normal scores of their ranks, an angle by its rank around the circle: this leaves the information
unchanged, and the estimate does not depend on units. Equal values are ranked at random, because the
order of the rows would otherwise reveal the factor. A code that is a function of a continuous factor has
infinite information; the estimate is then about the logarithm of the number of points.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, psi

from everlearn.core.validate import check_int
from everlearn.metrics.disentanglement.points import TYPES, Purpose, generator
from everlearn.metrics.measured import Floats, Ints

_ROWS = 500  # of a table of distances held at a time
# As wide as most normal scores, so that neither side alone decides who is near.
_AROUND = 4.0
# Neighbours are counted strictly within a distance that one of them has: rounding must not add it.
_WITHIN = 1 - 1e-10


def mutual_information(
    code: ArrayLike,
    factor: ArrayLike,
    factor_type: str = "continuous",
    neighbours: int = 3,
    seed: int = 0,
) -> float:
    """Estimate the mutual information of a code (P,) and a factor (P,), at least 0.

    Args:
        neighbours: more of them give less variance and more bias.
        seed: of the order of equal values.
    """
    x = np.asarray(code, np.float64)
    y = np.asarray(factor, np.float64)
    if factor_type not in TYPES:
        raise ValueError(f"unknown type {factor_type!r}; known: {', '.join(TYPES)}")
    if x.ndim != 1 or x.shape != y.shape or not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError(
            f"code and factor must be finite and as many, found {x.shape} and {y.shape}"
        )
    check_int(neighbours, "neighbours", 1, len(x) - 1, ", less than the points")
    random = generator(seed, Purpose.TIES)
    scores = _normal(len(x))[_ranks(x, random)]
    if factor_type == "discrete":
        return max(0.0, _ross(scores, y, neighbours))
    if factor_type == "circular":
        places: Floats = _ranks(np.mod(y, 2 * np.pi), random) * np.float64(_AROUND / len(y))
        return max(0.0, _kraskov(scores, places, neighbours, _AROUND))
    return max(0.0, _kraskov(scores, _normal(len(y))[_ranks(y, random)], neighbours))


def _kraskov(x: Floats, y: Floats, neighbours: int, around: float = np.inf) -> float:
    """psi(k) + psi(N) - <psi(n_x + 1) + psi(n_y + 1)>: eq. 8 of Kraskov et al. 2004.

    Args:
        around: how far y goes before it is back at its start.
    """
    reach = _reach(x, y, neighbours, around) * _WITHIN
    beside = np.concatenate([y - around, y, y + around]) if around < np.inf else y
    counts = np.stack([_count(x, x, reach), _count(beside, y, reach)])
    return float(psi(neighbours) + psi(len(x)) - 2 * psi(counts).mean())


def _reach(x: Floats, y: Floats, neighbours: int, around: float) -> Floats:
    """Return the distance (P,) of every point's k-th neighbour, the larger of those in x and y."""
    parts = np.array_split(np.arange(len(x)), -(-len(x) // _ROWS))
    return np.concatenate([_nearest(x, y, rows, neighbours, around) for rows in parts])


def _nearest(x: Floats, y: Floats, rows: Ints, neighbours: int, around: float) -> Floats:
    across = np.abs(y[rows, None] - y)
    far = np.maximum(np.abs(x[rows, None] - x), np.minimum(across, around - across))
    # The nearest is the point itself, at 0.
    nearest: Floats = np.partition(far, neighbours, axis=1)[:, neighbours]
    return nearest


def _ross(x: Floats, labels: Floats, neighbours: int) -> float:
    """psi(N) + <psi(k)> - <psi(N_y)> - <psi(m)> over the points that are not alone with a label."""
    numbers, sizes = np.unique(labels, return_inverse=True, return_counts=True)[1:]
    kept = sizes[numbers] > 1
    if not kept.any():
        return 0.0
    x = x[kept]
    numbers = numbers[kept]
    nearest = np.minimum(neighbours, sizes - 1)
    reach = np.empty(len(x))
    for label in np.unique(numbers):
        rows = np.flatnonzero(numbers == label)
        reach[rows] = _reach(x[rows], x[rows], int(nearest[label]), np.inf)
    within = _count(x, x, reach * _WITHIN)
    terms = psi(nearest[numbers]) - psi(sizes[numbers]) - psi(within)
    return float(psi(len(x)) + terms.mean())


def _count(among: Floats, of: Floats, reach: Floats) -> Ints:
    """Count the numbers within reach of each, itself included."""
    ranked = np.sort(among)
    upper = np.searchsorted(ranked, of + reach, "right")
    return upper - np.searchsorted(ranked, of - reach, "left")


def _ranks(values: Floats, random: np.random.Generator) -> Ints:
    """Return ranks (P,) from 0 on, equal values in random order."""
    order = random.permutation(len(values))
    ranks = np.empty(len(values), np.int64)
    ranks[order[np.argsort(values[order], kind="stable")]] = np.arange(len(values))
    return ranks


def _normal(count: int) -> Floats:
    """Return `count` quantiles of a standard normal, at the centres of equal shares."""
    scores: Floats = ndtri((np.arange(count) + 0.5) / count)
    return scores
