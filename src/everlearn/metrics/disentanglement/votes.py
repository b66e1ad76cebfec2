"""Which factor was held fixed? Two scores that guess it from codes: FactorVAE's and beta-VAE's.

Their papers draw images with one factor fixed from a generator. Here there is a finite table: points
share a factor when they share its label, a value or a bin. Every vote fixes a factor drawn at random
for 64 draws; 10,000 votes among the training points teach the guess, and 5,000 among the test points,
which it never saw, are scored. A point that shares its label with no other of its part is not drawn.
1 / K is chance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from everlearn.metrics.disentanglement.package import fit_logistic
from everlearn.metrics.disentanglement.points import Factor, Points, Purpose, generator, split
from everlearn.metrics.rows import Floats, Ints

TRAIN_VOTES, TEST_VOTES = 10_000, 5_000
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


def factor_vae(points: Points, seed: int = 0, least: float = 0.05) -> float:
    """Guess the fixed factor from the code that varies least (FactorVAE score, Kim and Mnih 2018).

    A vote draws points of one label, that of a point drawn before, with replacement, since a label
    may have fewer than 64. It goes to the code whose variance among them is the smallest share of
    its variance over all points. Each code then stands for the factor that most of its votes had.

    Args:
        least: codes of a smaller deviation, in the units they were given in, get no vote: 0.05 is
            for latents whose prior is N(0, 1). Where none is left, the score is chance.
    """
    alive = (points.deviations >= least) & (points.deviations > 0)
    train, test = split(points._replace(codes=points.codes[:, alive]), seed)
    random = generator(seed, Purpose.BATCHES)
    table = np.zeros((max(1, alive.sum()), len(points.factors)))
    np.add.at(table, _winners(train, TRAIN_VOTES, random), 1)
    winner, fixed = _winners(test, TEST_VOTES, random)
    return float(np.mean(table.argmax(axis=1)[winner] == fixed))


def beta_vae(points: Points, seed: int = 0) -> float:
    """Guess the fixed factor from how far pairs are apart in each code (Higgins et al. 2017).

    A vote draws pairs of different points, each pair of one label, and averages the absolute
    differences of their codes; a logistic regression guesses from these, brought to one scale.
    """
    train, test = split(points, seed)
    random = generator(seed, Purpose.PAIRS)
    apart, fixed = _distances(train, TRAIN_VOTES, random)
    held, answers = _distances(test, TEST_VOTES, random)
    mean, deviation = apart.mean(axis=0), apart.std(axis=0)
    scale = np.where(deviation > 0, deviation, 1.0)
    model = fit_logistic((apart - mean) / scale, fixed)
    return float(np.mean(model.predict((held - mean) / scale) == answers))


def _winners(part: Points, votes: int, random: np.random.Generator) -> tuple[Ints, Ints]:
    """The code that varied least in each vote (V,), and the factor that was fixed (V,)."""
    counts = _share_out(part, votes, random)
    winners = []
    for factor, count in zip(part.factors, counts, strict=True):
        drawn = _draw_alike(_group(factor), count, random)
        for rows in np.array_split(drawn, count // _AT_ONCE + 1):
            winners.append(_steadiest(part.codes[rows]))
    return np.concatenate(winners), np.repeat(np.arange(len(counts)), counts)


def _steadiest(codes: Floats) -> Ints:
    """The code of least variance in each batch, of codes (V, B, L); 0 where there is no code."""
    variances = codes.var(axis=1)
    if variances.shape[1] == 0:
        return np.zeros(len(variances), np.int64)
    steadiest: Ints = variances.argmin(axis=1)
    return steadiest


def _distances(part: Points, votes: int, random: np.random.Generator) -> tuple[Floats, Ints]:
    """Mean distance of the pairs in each vote (V, L), and the factor that they shared (V,)."""
    counts = _share_out(part, votes, random)
    found = []
    for factor, count in zip(part.factors, counts, strict=True):
        pairs = _draw_pairs(_group(factor), count, random)
        for one, other in np.array_split(pairs, count // _AT_ONCE + 1, axis=1):
            found.append(np.abs(part.codes[one] - part.codes[other]).mean(axis=1))
    return np.concatenate(found), np.repeat(np.arange(len(counts)), counts)


def _share_out(part: Points, votes: int, random: np.random.Generator) -> Ints:
    """Draw how many votes fix each factor, (K,), all factors being as likely."""
    return random.multinomial(votes, np.full(len(part.factors), 1 / len(part.factors)))


def _group(factor: Factor) -> _Groups:
    """Put the points of one label side by side; leave out those that are alone with theirs."""
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


def _draw_alike(groups: _Groups, votes: int, random: np.random.Generator) -> Ints:
    """Draw batches of points that share one label, (V, B)."""
    first = random.integers(len(groups.rows), size=(votes, 1))
    beside = random.integers(groups.size[first], size=(votes, _BATCH))
    drawn: Ints = groups.rows[groups.start[first] + beside]
    return drawn


def _draw_pairs(groups: _Groups, votes: int, random: np.random.Generator) -> Ints:
    """Draw batches of pairs, each of two points that share a label, (2, V, B)."""
    one = random.integers(len(groups.rows), size=(votes, _BATCH))
    start, size = groups.start[one], groups.size[one]
    step = random.integers(1, size, size=one.shape)
    other = start + (one - start + step) % size
    drawn: Ints = groups.rows[np.stack([one, other])]
    return drawn
