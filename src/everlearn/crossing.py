"""Whether closed curves cross themselves, many at once."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from everlearn.curves import evaluate
from everlearn.philox import Floats

Bools = NDArray[np.bool_]
_COARSE, _FINE = 16, 64


def crosses_itself(coefficients: Floats) -> Bools:
    """Tell which curves (B,) meet themselves, for curves whose knots turn once about the origin.

    Pieces that turn forward cannot meet each other. Each of the rest is cut into chords and compared
    with all others; where it bends sharply and could hide a small loop, also in finer chords with
    itself and its neighbours.
    """
    suspects, piece = np.nonzero(~_turns_forward(coefficients))
    out = np.zeros(len(coefficients), bool)
    out[suspects[_piece_crosses(coefficients[suspects], piece, _COARSE, True)]] = True
    around = (piece[:, None] + np.array([-1, 0, 1])) % coefficients.shape[1]
    local = coefficients[suspects[:, None], around]
    sharp = ~out[suspects] & _bends_sharply(local)
    middle = np.ones(sharp.sum(), np.int64)
    out[suspects[sharp][_piece_crosses(local[sharp], middle, _FINE, False)]] = True
    return out


def _bends_sharply(coefficients: Floats) -> Bools:
    """Tell which runs of pieces turn by more than a right angle between two coarse chords."""
    points = _chain(coefficients, _COARSE)
    chord = points[:, 1:] - points[:, :-1]
    turn = chord[:, 1:] * chord[:, :-1]
    return np.asarray((turn[..., 0] + turn[..., 1] < 0.0).any(axis=1))


def _chain(coefficients: Floats, steps: int) -> Floats:
    """Points along the pieces, one after the other, (B, P * steps, 2)."""
    count, pieces = coefficients.shape[:2]
    points = evaluate(coefficients, np.arange(steps) / steps)
    return points.reshape(count, pieces * steps, 2)


def _turns_forward(coefficients: Floats) -> Bools:
    """Certify pieces (B, P) whose polar angle only grows: they stay inside their own sector.

    p x p' is a quartic in t; it is positive where its Bernstein coefficients on both halves are.
    """
    c0, c1, c2, c3 = (coefficients[:, :, k] for k in range(4))
    a0, a1, a2 = _cross(c0, c1), 2.0 * _cross(c0, c2), 3.0 * _cross(c0, c3) + _cross(c1, c2)
    a3, a4 = 2.0 * _cross(c1, c3), _cross(c2, c3)
    b1, b2 = a0 + a1 / 4.0, a0 + a1 / 2.0 + a2 / 6.0
    b3, b4 = a0 + 0.75 * a1 + a2 / 2.0 + a3 / 4.0, a0 + a1 + a2 + a3 + a4
    level = [a0, b1, b2, b3, b4]
    forward = np.minimum(a0, b4) > 0.0
    while len(level) > 1:
        level = [(low + high) / 2.0 for low, high in pairwise(level)]
        forward = forward & (np.minimum(level[0], level[-1]) > 0.0)
    return np.asarray(forward)


def _piece_crosses(
    coefficients: Floats, piece: NDArray[np.intp], steps: int, closed: bool
) -> Bools:
    """Tell whether piece[b], cut into short chords, properly crosses any chord of curve b."""
    start = _chain(coefficients, steps)
    end = np.roll(start, -1, axis=1)
    mine = piece[:, None] * steps + np.arange(steps)
    curve = np.arange(len(start))[:, None]
    p, q = start[curve, mine][:, :, None], end[curve, mine][:, :, None]
    left = _cross(q - p, start[:, None] - p) > 0.0
    b, i, other = np.nonzero(left != np.roll(left, -1, axis=2))
    p, q, a = p[b, i, 0], q[b, i, 0], start[b, other]
    along = end[b, other] - a
    between = (_cross(along, p - a) > 0.0) != (_cross(along, q - a) > 0.0)
    apart = (other - mine[b, i]) % start.shape[1]
    neighbours = (apart <= 1) | (apart == start.shape[1] - 1)
    real = closed | (other < start.shape[1] - 1)
    out = np.zeros(len(start), bool)
    out[b[between & ~neighbours & real]] = True
    return out


def _cross(a: Floats, b: Floats) -> Floats:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
