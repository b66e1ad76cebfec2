"""Distances between shapes by intersection over union."""

from __future__ import annotations

import numpy as np
import pytest

from everlearn.shapes import geometry
from everlearn.shapes.overlap import iou_distances, packed_masks


def test_distance_is_one_minus_intersection_over_union():
    def box(left, right):
        corners = np.array([[[left, -0.5], [right, -0.5], [right, 0.5], [left, 0.5]]])
        return packed_masks(geometry.polygon(corners))

    a, b = box(-0.5, 0.5), box(0.0, 1.0)
    assert iou_distances(a[0], b)[0] == pytest.approx(1 - 1 / 3, abs=0.02)
    assert iou_distances(a[0], a)[0] == 0
