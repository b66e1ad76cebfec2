"""Closed piecewise-cubic plane curves, many at once: interpolation and exact geometry.

A batch of curves is an array of power coefficients (B, P, 4, 2): curve b runs through its pieces
p(t) = c0 + c1 t + c2 t**2 + c3 t**3, t in [0, 1], one after the other and back to the start.
Every function uses only exactly rounded operations in a fixed order (see core.random), so that the
bits do not depend on the machine.
"""

from __future__ import annotations

import numpy as np

from everlearn.core.random import Floats

# Five-point Gauss-Legendre on [0, 1] is exact up to degree 9; x**2 dy of a cubic has degree 8.
_INNER = (5 - 2 * (10 / 7) ** 0.5) ** 0.5 / 3
_OUTER = (5 + 2 * (10 / 7) ** 0.5) ** 0.5 / 3
NODES = np.array([0.5 - _OUTER / 2, 0.5 - _INNER / 2, 0.5, 0.5 + _INNER / 2, 0.5 + _OUTER / 2])
_ROOT_70 = 70**0.5
_OUTER_WEIGHT = (322 - 13 * _ROOT_70) / 1800
_INNER_WEIGHT = (322 + 13 * _ROOT_70) / 1800
WEIGHTS = np.array([_OUTER_WEIGHT, _INNER_WEIGHT, 64 / 225, _INNER_WEIGHT, _OUTER_WEIGHT])


def polygon(vertices: Floats) -> Floats:
    """Return curves that join vertices (B, n, 2) by straight lines."""
    coefficients = np.zeros((*vertices.shape[:2], 4, 2))
    coefficients[:, :, 0] = vertices
    coefficients[:, :, 1] = np.roll(vertices, -1, axis=1) - vertices
    return coefficients


def periodic_spline(vertices: Floats) -> Floats:
    """Return periodic cubic splines through vertices (B, n, 2), parametrised by chord length."""
    step = np.roll(vertices, -1, axis=1) - vertices
    chord = np.sqrt(step[..., 0] * step[..., 0] + step[..., 1] * step[..., 1])[..., None]
    direction = step / chord
    previous = np.roll(chord, 1, axis=1)
    right = 6.0 * (direction - np.roll(direction, 1, axis=1))
    # Second derivatives at the vertices, from the continuity of the first derivative there.
    second = _solve_cyclic(previous, 2.0 * (previous + chord), chord, right)
    following = np.roll(second, -1, axis=1)
    square = chord * chord
    coefficients = np.empty((*vertices.shape[:2], 4, 2))
    coefficients[:, :, 0] = vertices
    coefficients[:, :, 1] = step - square * (2.0 * second + following) / 6.0
    coefficients[:, :, 2] = square * second / 2.0
    coefficients[:, :, 3] = square * (following - second) / 6.0
    return coefficients


def _solve_cyclic(lower: Floats, main: Floats, upper: Floats, right: Floats) -> Floats:
    """Solve a diagonally dominant cyclic tridiagonal system, (B, n, 1) bands, by Sherman-Morrison."""
    first = main[:, :1]
    corner_low = upper[:, -1:]
    corner_high = lower[:, :1]
    main = main.copy()
    main[:, :1] += first
    main[:, -1:] += corner_low * corner_high / first
    spike = np.zeros_like(main)
    spike[:, :1] = -first
    spike[:, -1:] = corner_low
    both = _solve_tridiagonal(lower, main, upper, np.concatenate((right, spike), axis=2))
    solution = both[..., :2]
    correction = both[..., 2:]
    numerator = solution[:, :1] - solution[:, -1:] * corner_high / first
    denominator = 1.0 + correction[:, :1] - correction[:, -1:] * corner_high / first
    return solution - correction * (numerator / denominator)


def _solve_tridiagonal(lower: Floats, main: Floats, upper: Floats, right: Floats) -> Floats:
    """Solve tridiagonal systems along axis 1: forward elimination, then back substitution."""
    count = main.shape[1]
    ratio = np.empty_like(main)
    solution = np.empty_like(right)
    ratio[:, 0] = upper[:, 0] / main[:, 0]
    solution[:, 0] = right[:, 0] / main[:, 0]
    for i in range(1, count):
        pivot = main[:, i] - lower[:, i] * ratio[:, i - 1]
        ratio[:, i] = upper[:, i] / pivot
        solution[:, i] = (right[:, i] - lower[:, i] * solution[:, i - 1]) / pivot
    for i in range(count - 2, -1, -1):
        solution[:, i] -= ratio[:, i] * solution[:, i + 1]
    return solution


def evaluate(coefficients: Floats, t: Floats) -> Floats:
    """Return points at parameters t (T,) of every piece, (B, P, T, 2)."""
    c = coefficients[:, :, :, None, :]
    s = t[:, None]
    return ((c[:, :, 3] * s + c[:, :, 2]) * s + c[:, :, 1]) * s + c[:, :, 0]


def derivative(coefficients: Floats, t: Floats) -> Floats:
    """Return derivatives at parameters t (T,) of every piece, (B, P, T, 2)."""
    c = coefficients[:, :, :, None, :]
    s = t[:, None]
    return (3.0 * c[:, :, 3] * s + 2.0 * c[:, :, 2]) * s + c[:, :, 1]


def area_and_centroid(coefficients: Floats) -> tuple[Floats, Floats]:
    """Return the exact signed area (B,) and centroid (B, 2) of the enclosed area, by Green's theorem."""
    p = evaluate(coefficients, NODES)
    d = derivative(coefficients, NODES)
    x, y = p[..., 0], p[..., 1]
    dx, dy = d[..., 0] * WEIGHTS, d[..., 1] * WEIGHTS
    area = _total(x * dy - y * dx) / 2.0
    centroid = np.stack((_total(x * x * dy), -_total(y * y * dx)), axis=1)
    return area, centroid / (2.0 * area[:, None])


def long_axis(coefficients: Floats, lengths: Floats) -> Floats:
    """Return the unit vector (B, 2) of the first principal axis of the curve's points.

    Of its two directions, the one with a positive larger component.

    Args:
        lengths: (B, P) weights of the pieces; with chord lengths, points are spaced evenly along chords.
    """
    p = evaluate(coefficients, NODES)
    weight = lengths[:, :, None] * WEIGHTS
    total = _total(weight)
    x = p[..., 0] - (_total(weight * p[..., 0]) / total)[:, None, None]
    y = p[..., 1] - (_total(weight * p[..., 1]) / total)[:, None, None]
    xx = _total(weight * x * x)
    xy = _total(weight * x * y)
    yy = _total(weight * y * y)
    half = (xx - yy) / 2.0
    root = np.sqrt(half * half + xy * xy)
    wide = half >= 0.0
    axis = np.where(
        wide[:, None], np.stack((half + root, xy), axis=1), np.stack((xy, root - half), axis=1)
    )
    norm = np.sqrt(axis[:, 0] * axis[:, 0] + axis[:, 1] * axis[:, 1])
    isotropic = norm == 0.0
    axis[isotropic] = (1.0, 0.0)
    norm[isotropic] = 1.0
    unit: Floats = axis / norm[:, None]
    return unit


def bounding_box(coefficients: Floats) -> tuple[Floats, Floats]:
    """Return the exact lowest and highest corner, (B, 2) each: at knots or where a derivative is zero."""
    c = coefficients
    a, b, d = 3.0 * c[:, :, 3], 2.0 * c[:, :, 2], c[:, :, 1]
    discriminant = b * b - 4.0 * a * d
    # The roots q / a and d / q of the derivative, without cancellation (Press et al., eq. 5.6.4).
    q = -0.5 * (b + np.where(b < 0.0, -1.0, 1.0) * np.sqrt(np.maximum(discriminant, 0.0)))
    low = high = c[:, :, 0]
    for numerator, denominator in ((q, a), (d, q)):
        usable = (discriminant > 0.0) & (denominator != 0.0)
        t = np.where(usable, numerator / np.where(usable, denominator, 1.0), 0.0)
        t = np.minimum(np.maximum(t, 0.0), 1.0)
        point = ((c[:, :, 3] * t + c[:, :, 2]) * t + c[:, :, 1]) * t + c[:, :, 0]
        low, high = np.minimum(low, point), np.maximum(high, point)
    return low.min(axis=1), high.max(axis=1)


def _total(values: Floats) -> Floats:
    """Sum over pieces and nodes (B, P, T) in a fixed order, which np.sum does not promise."""
    return np.add.accumulate(values.reshape(len(values), -1), axis=1)[:, -1]
