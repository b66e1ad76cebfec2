"""Points along an outline."""

from __future__ import annotations

import numpy as np
import pytest

from everlearn.shapes import outline


def test_points_lie_on_the_curve_and_include_its_knots():
    one = outline(0, 2)
    assert one.points.shape == (1000, 2)
    gaps = np.abs(one.points[:, None] - one.coefficients[None, :, 0]).sum(axis=2).min(axis=0)
    assert gaps.max() == 0
    x, y = one.points.T
    nx, ny = np.roll(one.points, -1, axis=0).T
    assert (x * ny - nx * y).sum() / 2 == pytest.approx(one.area, rel=1e-4)
