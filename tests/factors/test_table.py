"""Tables of factors and their affine maps."""

from __future__ import annotations

import math

import numpy as np
import pytest

from everlearn.factors import Factors, canonical_factors, check_factors, theta


def test_theta_of_canonical_factors_is_the_identity():
    assert (theta(canonical_factors(3)) == np.eye(2, 3)).all()


def test_theta_scales_rotates_and_translates():
    one = Factors(*(np.array([v]) for v in (0, 0.5, math.pi / 2, 1.0, 0.25)))
    assert theta(one)[0] == pytest.approx(np.array([[0, -0.5, 0.5], [0.5, 0, -0.25]]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scale": [np.nan]}, "'scale' must be finite"),
        ({"x": [np.inf]}, "'x' must be finite"),
        ({"scale": [0.0]}, "'scale' must lie in"),
        ({"scale": [-1.0]}, "'scale' must lie in"),
        ({"scale": [1e6]}, "'scale' must lie in"),
        ({"x": [1e9]}, "'x' must lie in"),
        ({"color": [1]}, "canvas has 1"),
        ({"color": [-1]}, "'color' must lie in"),
        ({"color": [0.5]}, "whole number"),
        ({"y": [0.1, 0.2]}, "one length"),
        ({"y": [[0.1]]}, "one length"),
        ({"orientation": ["left"]}, "'orientation' must be finite"),
    ],
)
def test_invalid_factors_are_rejected(changes, message):
    with pytest.raises(ValueError, match=message):
        check_factors(
            canonical_factors()._replace(**{k: np.array(v) for k, v in changes.items()}), 1
        )
