"""Mutual information without bins, from the distances between nearest neighbours, in nats.

For a continuous or circular factor, estimator 1 of Kraskov, Stögbauer and Grassberger 2004; for a
discrete one, that of Ross 2014. They see any dependence, where a Gaussian copula sees monotone ones
only, and their bias does not grow with a number of bins. Both numbers are first replaced by normal
scores of their ranks, the angle by its rank around the circle: information does not change by that,
and the estimate then does not depend on units. Equal values take their ranks at random, else the
order of the rows would tell of the factor. A code that is a function of a continuous factor has
infinite information; the estimate then is about the logarithm of the number of points.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from everlearn.border import check_whole
from everlearn.metrics.disentanglement.points import KINDS, Purpose, generator
from everlearn.metrics.rows import Floats, Ints

_ROWS = 500  # of a table of distances held at a time
# As wide as most normal scores, so that neither side alone decides who is near.
_AROUND = 4.0
# Neighbours are counted strictly within a distance that one of them has: rounding must not add it.
_WITHIN = 1 - 1e-10


def mutual_information(
    code: ArrayLike, factor: ArrayLike, kind: str = "continuous", neighbours: int = 3, seed: int = 0
) -> float:
    """Estimate what a code (P,) and a factor (P,) of some kind tell of one another; at least 0.

    Args:
        neighbours: more of them bring less noise and more bias.
        seed: of the order of equal values.
    """
    x, y = np.asarray(code, np.float64), np.asarray(factor, np.float64)
    if kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r}; known: {', '.join(KINDS)}")
    if x.ndim != 1 or x.shape != y.shape or not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError(
            f"code and factor must be finite and as many, found {x.shape} and {y.shape}"
        )
    check_whole(neighbours, "neighbours", 1, len(x) - 1, ", less than the points")
    random = generator(seed, Purpose.TIES)
    scores = _normal(len(x))[_ranks(x, random)]
    if kind == "discrete":
        return max(0.0, _ross(scores, y, neighbours))
    if kind == "circular":
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
    return float(_psi(neighbours) + _psi(len(x)) - 2 * _psi(counts).mean())


def _reach(x: Floats, y: Floats, neighbours: int, around: float) -> Floats:
    """Distance (P,) of every point's k-th neighbour, the larger of those in x and in y."""
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
    x, numbers = x[kept], numbers[kept]
    most, reach = np.minimum(neighbours, sizes - 1), np.empty(len(x))
    for label in np.unique(numbers):
        own = np.flatnonzero(numbers == label)
        reach[own] = _reach(x[own], x[own], int(most[label]), np.inf)
    within = _count(x, x, reach * _WITHIN)
    terms = _psi(most[numbers]) - _psi(sizes[numbers]) - _psi(within)
    return float(_psi(len(x)) + terms.mean())


def _count(among: Floats, of: Floats, reach: Floats) -> Ints:
    """How many numbers lie within reach of each, itself one of them."""
    ranked = np.sort(among)
    upper = np.searchsorted(ranked, of + reach, "right")
    return upper - np.searchsorted(ranked, of - reach, "left")


def _psi(count: int | Ints) -> Floats:
    """The digamma function of whole numbers from 1 on: a harmonic number less Euler's constant."""
    numbers = np.asarray(count)
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, numbers.max() + 1))])
    psi: Floats = harmonic[numbers - 1] - np.euler_gamma
    return psi


def _ranks(values: Floats, random: np.random.Generator) -> Ints:
    """Ranks (P,) from 0 on, equal values in any order."""
    order = random.permutation(len(values))
    ranks = np.empty(len(values), np.int64)
    ranks[order[np.argsort(values[order], kind="stable")]] = np.arange(len(values))
    return ranks


def _normal(count: int) -> Floats:
    """Quantiles of a standard normal, as many as there are points, in the middle of their shares."""
    quantile = NormalDist().inv_cdf
    return np.array([quantile((rank + 0.5) / count) for rank in range(count)])
