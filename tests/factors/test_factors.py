"""Tables of factors and their affine map."""

from __future__ import annotations

import math

import numpy as np
import pytest

from everlearn.factors import Factors, canonical, check_factors, grid, random, theta


def test_d2_canonical_factors_map_to_the_identity():
    assert (theta(canonical(3)) == np.eye(2, 3)).all()


def test_theta_is_scale_times_rotation_and_a_shift():
    one = Factors(*(np.array([v]) for v in (0, 0.5, math.pi / 2, 1.0, 0.25)))
    assert theta(one)[0] == pytest.approx(np.array([[0, -0.5, 0.5], [0.5, 0, -0.25]]))


def test_g12_the_grid_has_every_combination_once_y_fastest():
    table = np.stack([np.asarray(c, float) for c in grid(5)], axis=1)
    assert table.shape == (625, 5)
    assert len(np.unique(table, axis=0)) == 625
    assert (np.diff(table[:5, 4]) > 0).all()
    assert table[0, 1:] == pytest.approx([0.5, 0, 0, 0])
    assert table[-1, 1:] == pytest.approx([1, 2 * math.pi * 5 / 6, 1, 1])


def test_the_paper_orientation_grid_is_uneven_and_the_other_even():
    degrees = np.degrees(np.unique(grid(5).orientation))
    assert degrees == pytest.approx([0, 75, 150, 225, 300])
    even = np.degrees(np.unique(grid(5, orientation="even").orientation))
    assert even == pytest.approx([0, 72, 144, 216, 288])


def test_colours_multiply_the_grid():
    assert len(grid(2, colors=3).color) == 3 * 16
    assert sorted(set(grid(2, colors=3).color)) == [0, 1, 2]


def test_random_rows_depend_on_their_number_alone():
    many, few = random(4, 100), random(4, 10)
    for a, b in zip(many, few, strict=True):
        assert (a[:10] == b).all()
    assert (random(4, 10, index=1).scale != few.scale).any()


def test_random_rows_fill_the_ranges():
    f = random(0, 5000)
    assert 0.5 <= f.scale.min() < 0.501
    assert 0.999 < f.scale.max() < 1
    assert f.orientation.max() > 6.28
    assert abs(f.x.mean() - 0.5) < 0.02


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
def test_bad_factors_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        check_factors(canonical()._replace(**{k: np.array(v) for k, v in changes.items()}), 1)


@pytest.mark.parametrize("values", [0, -3, 5000, 2.5, True])
def test_a_grid_needs_a_sensible_number_of_values(values):
    with pytest.raises((ValueError, TypeError), match="values per factor"):
        grid(values)


def test_an_unknown_orientation_grid_is_refused():
    with pytest.raises(ValueError, match="'paper' or 'even'"):
        grid(5, orientation="round")
