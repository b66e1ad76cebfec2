"""Closed piecewise-cubic plane curves, many at once: interpolation and exact geometry.

A batch of curves is an array of power coefficients (B, P, 4, 2): curve b runs through its pieces
p(t) = c0 + c1 t + c2 t**2 + c3 t**3, t in [0, 1], one after the other and back to the start.
Every function uses only exactly rounded operations in a fixed order (see philox), so that the bits
do not depend on the machine.
"""

from __future__ import annotations

import numpy as np

from everlearn.philox import Floats

# Five-point Gauss-Legendre on [0, 1]: exact for polynomials up to degree 9, and x**2 dy of a cubic has 8.
_INNER = (5 - 2 * (10 / 7) ** 0.5) ** 0.5 / 3
_OUTER = (5 + 2 * (10 / 7) ** 0.5) ** 0.5 / 3
NODES = np.array([0.5 - _OUTER / 2, 0.5 - _INNER / 2, 0.5, 0.5 + _INNER / 2, 0.5 + _OUTER / 2])
_ROOT_70 = 70**0.5
_SIDE, _NEAR = (322 - 13 * _ROOT_70) / 1800, (322 + 13 * _ROOT_70) / 1800
WEIGHTS = np.array([_SIDE, _NEAR, 64 / 225, _NEAR, _SIDE])


def polygon(vertices: Floats) -> Floats:
    """Join vertices (B, n, 2) by straight lines."""
    coefficients = np.zeros((*vertices.shape[:2], 4, 2))
    coefficients[:, :, 0] = vertices
    coefficients[:, :, 1] = np.roll(vertices, -1, axis=1) - vertices
    return coefficients


def periodic_spline(vertices: Floats) -> Floats:
    """Interpolate vertices (B, n, 2) by the periodic cubic spline with chord-length parameter."""
    step = np.roll(vertices, -1, axis=1) - vertices
    chord = np.sqrt(step[..., 0] * step[..., 0] + step[..., 1] * step[..., 1])[..., None]
    slope = step / chord
    before = np.roll(chord, 1, axis=1)
    right = 6.0 * (slope - np.roll(slope, 1, axis=1))
    bend = _solve_cyclic(before, 2.0 * (before + chord), chord, right)
    after, square = np.roll(bend, -1, axis=1), chord * chord
    coefficients = np.empty((*vertices.shape[:2], 4, 2))
    coefficients[:, :, 0] = vertices
    coefficients[:, :, 1] = step - square * (2.0 * bend + after) / 6.0
    coefficients[:, :, 2] = square * bend / 2.0
    coefficients[:, :, 3] = square * (after - bend) / 6.0
    return coefficients


def _solve_cyclic(lower: Floats, main: Floats, upper: Floats, right: Floats) -> Floats:
    """Solve a diagonally dominant cyclic tridiagonal system, (B, n, 1) bands, by Sherman-Morrison."""
    first = main[:, :1]
    corner_low, corner_high = upper[:, -1:], lower[:, :1]
    main = main.copy()
    main[:, :1] += first
    main[:, -1:] += corner_low * corner_high / first
    spike = np.zeros_like(main)
    spike[:, :1], spike[:, -1:] = -first, corner_low
    both = _solve_tridiagonal(lower, main, upper, np.concatenate((right, spike), axis=2))
    answer, shift = both[..., :2], both[..., 2:]
    top = answer[:, :1] - answer[:, -1:] * corner_high / first
    bottom = 1.0 + shift[:, :1] - shift[:, -1:] * corner_high / first
    return answer - shift * (top / bottom)


def _solve_tridiagonal(lower: Floats, main: Floats, upper: Floats, right: Floats) -> Floats:
    """Eliminate forwards, substitute backwards, along axis 1."""
    count = main.shape[1]
    ratio, answer = np.empty_like(main), np.empty_like(right)
    ratio[:, 0], answer[:, 0] = upper[:, 0] / main[:, 0], right[:, 0] / main[:, 0]
    for i in range(1, count):
        pivot = main[:, i] - lower[:, i] * ratio[:, i - 1]
        ratio[:, i] = upper[:, i] / pivot
        answer[:, i] = (right[:, i] - lower[:, i] * answer[:, i - 1]) / pivot
    for i in range(count - 2, -1, -1):
        answer[:, i] -= ratio[:, i] * answer[:, i + 1]
    return answer


def evaluate(coefficients: Floats, t: Floats) -> Floats:
    """Points at parameters t (T,) of every piece; (B, P, T, 2)."""
    c = coefficients[:, :, :, None, :]
    s = t[:, None]
    return ((c[:, :, 3] * s + c[:, :, 2]) * s + c[:, :, 1]) * s + c[:, :, 0]


def derivative(coefficients: Floats, t: Floats) -> Floats:
    """Derivatives by t at parameters t (T,) of every piece; (B, P, T, 2)."""
    c = coefficients[:, :, :, None, :]
    s = t[:, None]
    return (3.0 * c[:, :, 3] * s + 2.0 * c[:, :, 2]) * s + c[:, :, 1]


def area_and_centroid(coefficients: Floats) -> tuple[Floats, Floats]:
    """Signed area (B,) and centroid of the enclosed area (B, 2), exact by Green's theorem."""
    p, d = evaluate(coefficients, NODES), derivative(coefficients, NODES)
    x, y, dx, dy = p[..., 0], p[..., 1], d[..., 0] * WEIGHTS, d[..., 1] * WEIGHTS
    area = _total(x * dy - y * dx) / 2.0
    centroid = np.stack((_total(x * x * dy), -_total(y * y * dx)), axis=1)
    return area, centroid / (2.0 * area[:, None])


def long_axis(coefficients: Floats, lengths: Floats) -> Floats:
    """Unit vector (B, 2) of the first principal axis of the curve's points.

    `lengths` (B, P) weighs the pieces, as points spaced evenly in a chord-length parameter would.
    Of the two directions the one whose larger component is positive is returned.
    """
    p = evaluate(coefficients, NODES)
    weight = lengths[:, :, None] * WEIGHTS
    whole = _total(weight)
    x = p[..., 0] - (_total(weight * p[..., 0]) / whole)[:, None, None]
    y = p[..., 1] - (_total(weight * p[..., 1]) / whole)[:, None, None]
    xx, xy, yy = _total(weight * x * x), _total(weight * x * y), _total(weight * y * y)
    half = (xx - yy) / 2.0
    root = np.sqrt(half * half + xy * xy)
    wide = half >= 0.0
    axis = np.where(
        wide[:, None], np.stack((half + root, xy), axis=1), np.stack((xy, root - half), axis=1)
    )
    norm = np.sqrt(axis[:, 0] * axis[:, 0] + axis[:, 1] * axis[:, 1])
    round_curve = norm == 0.0
    axis[round_curve], norm[round_curve] = (1.0, 0.0), 1.0
    unit: Floats = axis / norm[:, None]
    return unit


def bounding_box(coefficients: Floats) -> tuple[Floats, Floats]:
    """Lowest and highest corner (B, 2) each, exact: at knots or where the derivative vanishes."""
    c = coefficients
    a, b, d = 3.0 * c[:, :, 3], 2.0 * c[:, :, 2], c[:, :, 1]
    inner = b * b - 4.0 * a * d
    q = -0.5 * (b + np.where(b < 0.0, -1.0, 1.0) * np.sqrt(np.maximum(inner, 0.0)))
    low = high = c[:, :, 0]
    for top, bottom in ((q, a), (d, q)):
        usable = (inner > 0.0) & (bottom != 0.0)
        t = np.where(usable, top / np.where(usable, bottom, 1.0), 0.0)
        t = np.minimum(np.maximum(t, 0.0), 1.0)
        point = ((c[:, :, 3] * t + c[:, :, 2]) * t + c[:, :, 1]) * t + c[:, :, 0]
        low, high = np.minimum(low, point), np.maximum(high, point)
    return low.min(axis=1), high.max(axis=1)


def _total(values: Floats) -> Floats:
    """Sum pieces and nodes (B, P, T), one after the other."""
    return np.add.accumulate(values.reshape(len(values), -1), axis=1)[:, -1]
