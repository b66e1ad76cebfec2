"""Test closed curves for self-intersection, many at once."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from everlearn.core.random import Floats
from everlearn.shapes.geometry import evaluate

Bools = NDArray[np.bool_]
_COARSE_STEPS = 16
_FINE_STEPS = 64


def self_intersects(coefficients: Floats) -> Bools:
    """Return which curves (B,) intersect themselves, for knots that go once around the origin.

    Pieces with a growing polar angle cannot intersect each other. Every other piece is cut into chords
    and tested against the chords of its curve; where it bends sharply and could hide a small loop, it
    is also tested in finer chords against itself and its neighbours.
    """
    curve, piece = np.nonzero(~_has_growing_angle(coefficients))
    out = np.zeros(len(coefficients), bool)
    out[curve[_piece_intersects(coefficients[curve], piece, _COARSE_STEPS, True)]] = True
    neighbours = (piece[:, None] + np.array([-1, 0, 1])) % coefficients.shape[1]
    local = coefficients[curve[:, None], neighbours]
    sharp = ~out[curve] & _bends_sharply(local)
    middle = np.ones(sharp.sum(), np.int64)
    out[curve[sharp][_piece_intersects(local[sharp], middle, _FINE_STEPS, False)]] = True
    return out


def _bends_sharply(coefficients: Floats) -> Bools:
    """Return which runs of pieces turn by more than a right angle between two coarse chords."""
    points = _sample_points(coefficients, _COARSE_STEPS)
    chord = points[:, 1:] - points[:, :-1]
    product = chord[:, 1:] * chord[:, :-1]
    return np.asarray((product[..., 0] + product[..., 1] < 0.0).any(axis=1))


def _sample_points(coefficients: Floats, steps: int) -> Floats:
    """Return points along the pieces in order, (B, P * steps, 2)."""
    count, pieces = coefficients.shape[:2]
    points = evaluate(coefficients, np.arange(steps) / steps)
    return points.reshape(count, pieces * steps, 2)


def _has_growing_angle(coefficients: Floats) -> Bools:
    """Certify pieces (B, P) with a strictly growing polar angle: they stay inside their sector.

    The angle grows where p x p', a quartic in t, is positive. It is, if all its Bernstein coefficients
    on both halves of [0, 1] are.
    """
    c0, c1, c2, c3 = (coefficients[:, :, k] for k in range(4))
    # Power coefficients a of the quartic, then its Bernstein coefficients b on [0, 1]; b0 = a0.
    a0 = _cross(c0, c1)
    a1 = 2.0 * _cross(c0, c2)
    a2 = 3.0 * _cross(c0, c3) + _cross(c1, c2)
    a3 = 2.0 * _cross(c1, c3)
    a4 = _cross(c2, c3)
    b1 = a0 + a1 / 4.0
    b2 = a0 + a1 / 2.0 + a2 / 6.0
    b3 = a0 + 0.75 * a1 + a2 / 2.0 + a3 / 4.0
    b4 = a0 + a1 + a2 + a3 + a4
    # De Casteljau at 1/2: the ends of all levels are the coefficients on the two halves.
    level = [a0, b1, b2, b3, b4]
    positive = np.minimum(a0, b4) > 0.0
    while len(level) > 1:
        level = [(low + high) / 2.0 for low, high in pairwise(level)]
        positive = positive & (np.minimum(level[0], level[-1]) > 0.0)
    return np.asarray(positive)


def _piece_intersects(
    coefficients: Floats, piece: NDArray[np.intp], steps: int, closed: bool
) -> Bools:
    """Return whether a chord of piece[b] properly crosses any other chord of curve b."""
    start = _sample_points(coefficients, steps)
    end = np.roll(start, -1, axis=1)
    num_chords = start.shape[1]
    chords = piece[:, None] * steps + np.arange(steps)
    curve = np.arange(len(start))[:, None]
    p = start[curve, chords][:, :, None]
    q = end[curve, chords][:, :, None]
    # Other chords with ends on both sides of the line p q ...
    left = _cross(q - p, start[:, None] - p) > 0.0
    b, i, other = np.nonzero(left != np.roll(left, -1, axis=2))
    p = p[b, i, 0]
    q = q[b, i, 0]
    # ... cross the chord p q itself, if p and q are on both sides of them.
    a = start[b, other]
    along = end[b, other] - a
    crosses = (_cross(along, p - a) > 0.0) != (_cross(along, q - a) > 0.0)
    # Adjacent chords share a point, and in an open run the chord from the end to the start is not real.
    gap = (other - chords[b, i]) % num_chords
    adjacent = (gap <= 1) | (gap == num_chords - 1)
    real = closed | (other < num_chords - 1)
    out = np.zeros(len(start), bool)
    out[b[crosses & ~adjacent & real]] = True
    return out


def _cross(a: Floats, b: Floats) -> Floats:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
