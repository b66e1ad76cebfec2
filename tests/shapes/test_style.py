"""Validation of shape styles."""

from __future__ import annotations

import pytest

from everlearn.shapes import ShapeStyle


@pytest.mark.parametrize(
    "changes",
    [
        {"vertices": (3, 8)},
        {"vertices": 5},
        {"orders": ([1],)},
        {"radius_clip": (1e-200, 2)},
        {"vertices": (8, 5)},
        {"vertices": (5.0, 8)},
        {"radius_std": -1},
        {"radius_std": float("nan")},
        {"radius_clip": (0, 2)},
        {"angle_std": float("inf")},
        {"orders": (2,)},
        {"orders": ()},
        {"center": "top"},
        {"align": 1},
        {"min_distance": 0.9},
        {"block": 1},
    ],
)
def test_invalid_styles_are_rejected(changes):
    with pytest.raises((ValueError, TypeError), match=next(iter(changes))):
        ShapeStyle(**changes)
