"""Grids of factors and random combinations."""

from __future__ import annotations

import math

import numpy as np
import pytest

from everlearn.factors import grid, random_factors


def test_grid_lists_every_combination_once_with_y_fastest():
    table = np.stack([np.asarray(c, float) for c in grid(5)], axis=1)
    assert table.shape == (625, 5)
    assert len(np.unique(table, axis=0)) == 625
    assert (np.diff(table[:5, 4]) > 0).all()
    assert table[0, 1:] == pytest.approx([0.5, 0, 0, 0])
    assert table[-1, 1:] == pytest.approx([1, 2 * math.pi * 5 / 6, 1, 1])


def test_orientation_spacing_of_the_paper_and_even_grids():
    degrees = np.degrees(np.unique(grid(5).orientation))
    assert degrees == pytest.approx([0, 75, 150, 225, 300])
    even = np.degrees(np.unique(grid(5, orientation="even").orientation))
    assert even == pytest.approx([0, 72, 144, 216, 288])


def test_grid_is_repeated_for_every_colour():
    assert len(grid(2, colors=3).color) == 3 * 16
    assert sorted(set(grid(2, colors=3).color)) == [0, 1, 2]


def test_random_rows_do_not_depend_on_the_count():
    many, few = random_factors(4, 100), random_factors(4, 10)
    for a, b in zip(many, few, strict=True):
        assert (a[:10] == b).all()
    assert (random_factors(4, 10, index=1).scale != few.scale).any()


def test_random_factors_cover_the_ranges():
    f = random_factors(0, 5000)
    assert 0.5 <= f.scale.min() < 0.501
    assert 0.999 < f.scale.max() < 1
    assert f.orientation.max() > 6.28
    assert abs(f.x.mean() - 0.5) < 0.02


@pytest.mark.parametrize("values", [0, -3, 5000, 2.5, True])
def test_invalid_grid_sizes_are_rejected(values):
    with pytest.raises((ValueError, TypeError), match="values per factor"):
        grid(values)


def test_unknown_orientation_spacing_is_rejected():
    with pytest.raises(ValueError, match="'paper' or 'even'"):
        grid(5, orientation="round")
