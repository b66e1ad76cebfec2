"""Self-intersecting geometry are found, and no shape is one."""

from __future__ import annotations

import numpy as np

from everlearn.shapes import geometry, outlines
from everlearn.shapes.self_intersection import self_intersects


def _count_crossings(points: np.ndarray) -> int:
    """Count proper crossings among all pairs of edges of a closed polygon, by brute force."""
    a = points
    b = np.roll(points, -1, axis=0)

    def side(p, q, r):
        return (q[..., 0] - p[..., 0]) * (r[..., 1] - p[..., 1]) - (q[..., 1] - p[..., 1]) * (
            r[..., 0] - p[..., 0]
        )

    p, q = a[:, None], b[:, None]
    separated = side(p, q, a[None]) * side(p, q, b[None]) < 0
    separates = side(a[None], b[None], p) * side(a[None], b[None], q) < 0
    return int((separated & separates).sum())


def test_no_shape_intersects_itself():
    batch = outlines(1, np.arange(600))
    for row in np.flatnonzero(batch.orders == 3):
        curve = batch.coefficients[row : row + 1, : batch.pieces[row]]
        points = geometry.evaluate(curve, np.arange(40) / 40).reshape(-1, 2)
        assert _count_crossings(points) == 0


def test_a_figure_of_eight_intersects_itself():
    eight = np.array([[[1.0, 0.1], [0.2, 1.0], [1.2, 1.0], [-1, -1], [0.5, -1]]])
    plain = np.array([[[1.0, 0], [0.3, 1], [-0.8, 0.6], [-0.8, -0.6], [0.3, -1]]])
    both = geometry.periodic_spline(np.concatenate((eight, plain)))
    assert self_intersects(both).tolist() == [True, False]
