"""The FactorVAE and beta-VAE scores: predict from codes which factor was held fixed.

The papers draw images with one factor fixed from a generator. Here there is a finite table: points
share a factor if they share its label, a value or a bin. Every vote fixes a random factor for 64 draws;
a classifier is trained on 10,000 votes among the training points and scored on 5,000 among the test
points. A point that shares its label with no other of its part is not drawn. 1 / K is chance level.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from everlearn.metrics.disentanglement.package import fit_logistic
from everlearn.metrics.disentanglement.points import Factor, Points, Purpose, generator, split
from everlearn.metrics.measured import Floats, Ints

TRAIN_VOTES = 10_000
TEST_VOTES = 5_000
_BATCH = 64
_AT_ONCE = 250  # votes whose codes are held in memory together


class _Groups(NamedTuple):
    """Points that share a factor's label with others.

    Attributes:
        rows: (N,) of the points, those of one label side by side.
        start: (N,) where among them the group of each begins.
        size: (N,) of the group of each.
    """

    rows: Ints
    start: Ints
    size: Ints


def factor_vae(points: Points, seed: int = 0, min_deviation: float = 0.05) -> float:
    """Predict the fixed factor from the code that varies least (FactorVAE score, Kim and Mnih 2018).

    A vote draws a point, then points of its label with replacement, since a label may have fewer than
    64. It goes to the code with the smallest variance among them relative to its variance over all
    points. Each code then predicts the factor that most of its votes had.

    Args:
        min_deviation: codes of a smaller deviation, in their original units, get no vote: 0.05 is for
            latents with a prior of N(0, 1). If none is left, the score is at chance level.
    """
    alive = (points.deviations >= min_deviation) & (points.deviations > 0)
    train, test = split(points._replace(codes=points.codes[:, alive]), seed)
    random = generator(seed, Purpose.BATCHES)
    table = np.zeros((max(1, alive.sum()), len(points.factors)))
    np.add.at(table, _winners(train, TRAIN_VOTES, random), 1)
    winner, fixed = _winners(test, TEST_VOTES, random)
    return float(np.mean(table.argmax(axis=1)[winner] == fixed))


def beta_vae(points: Points, seed: int = 0) -> float:
    """Predict the fixed factor from the distances of pairs in each code (Higgins et al. 2017).

    A vote draws pairs of different points, each pair of one label, and averages the absolute
    differences of their codes; a logistic regression predicts from these, standardised.
    """
    train, test = split(points, seed)
    random = generator(seed, Purpose.PAIRS)
    distances, fixed = _distances(train, TRAIN_VOTES, random)
    held, answers = _distances(test, TEST_VOTES, random)
    mean = distances.mean(axis=0)
    deviation = distances.std(axis=0)
    scale = np.where(deviation > 0, deviation, 1.0)
    model = fit_logistic((distances - mean) / scale, fixed)
    return float(np.mean(model.predict((held - mean) / scale) == answers))


def _winners(part: Points, votes: int, random: np.random.Generator) -> tuple[Ints, Ints]:
    """Return the code that varied least in each vote (V,), and the factor that was fixed (V,)."""
    counts = _draw_counts(part, votes, random)
    winners = []
    for factor, count in zip(part.factors, counts, strict=True):
        drawn = _draw_batches(_group(factor), count, random)
        for rows in np.array_split(drawn, count // _AT_ONCE + 1):
            winners.append(_least_varying(part.codes[rows]))
    return np.concatenate(winners), np.repeat(np.arange(len(counts)), counts)


def _least_varying(codes: Floats) -> Ints:
    """Return the code of least variance in each batch of codes (V, B, L); 0 if there is no code."""
    variances = codes.var(axis=1)
    if variances.shape[1] == 0:
        return np.zeros(len(variances), np.int64)
    least: Ints = variances.argmin(axis=1)
    return least


def _distances(part: Points, votes: int, random: np.random.Generator) -> tuple[Floats, Ints]:
    """Return the mean distance of the pairs in each vote (V, L), and the factor they share (V,)."""
    counts = _draw_counts(part, votes, random)
    found = []
    for factor, count in zip(part.factors, counts, strict=True):
        pairs = _draw_pairs(_group(factor), count, random)
        for first, second in np.array_split(pairs, count // _AT_ONCE + 1, axis=1):
            found.append(np.abs(part.codes[first] - part.codes[second]).mean(axis=1))
    return np.concatenate(found), np.repeat(np.arange(len(counts)), counts)


def _draw_counts(part: Points, votes: int, random: np.random.Generator) -> Ints:
    """Draw how many votes fix each factor, (K,), all factors equally likely."""
    return random.multinomial(votes, np.full(len(part.factors), 1 / len(part.factors)))


def _group(factor: Factor) -> _Groups:
    """Group the points by label; leave out those that are alone with theirs."""
    sizes = np.bincount(factor.labels)
    rows = np.argsort(factor.labels, kind="stable")
    rows = rows[sizes[factor.labels[rows]] > 1]
    if len(rows) == 0:
        raise ValueError(
            f"no two of {len(factor.labels)} points share a value of factor {factor.name!r}; "
            "give more points"
        )
    labels = factor.labels[rows]
    return _Groups(rows, np.searchsorted(labels, labels), sizes[labels])


def _draw_batches(groups: _Groups, votes: int, random: np.random.Generator) -> Ints:
    """Draw batches of points that share one label, (V, B)."""
    first = random.integers(len(groups.rows), size=(votes, 1))
    offset = random.integers(groups.size[first], size=(votes, _BATCH))
    drawn: Ints = groups.rows[groups.start[first] + offset]
    return drawn


def _draw_pairs(groups: _Groups, votes: int, random: np.random.Generator) -> Ints:
    """Draw batches of pairs, each of two points that share a label, (2, V, B)."""
    first = random.integers(len(groups.rows), size=(votes, _BATCH))
    start = groups.start[first]
    size = groups.size[first]
    offset = random.integers(1, size, size=first.shape)
    second = start + (first - start + offset) % size
    drawn: Ints = groups.rows[np.stack([first, second])]
    return drawn
