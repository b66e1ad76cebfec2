"""The algebra of factor spaces: what is sampled belongs, what is listed is all there is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everlearn.factors import (
    UNIFORMS,
    Interval,
    Minus,
    Mixture,
    Product,
    Space,
    Values,
    continuous_space,
    grid_space,
)

numbers = st.floats(-2, 2).map(lambda v: round(v, 3))
sets = st.one_of(
    st.lists(numbers, min_size=1, max_size=4, unique=True).map(lambda v: Values(tuple(v))),
    st.tuples(numbers, st.floats(0.01, 2)).map(lambda p: Interval(p[0], p[0] + p[1])),
)
products = st.builds(Product, scale=sets, orientation=sets, x=sets, y=sets)
mixtures = st.lists(products, min_size=1, max_size=3).map(
    lambda parts: Mixture(tuple(parts), tuple(range(1, len(parts) + 1)))
)


def _draws(count: int = 200) -> np.ndarray:
    return np.random.default_rng(1).random((count, UNIFORMS))


@given(st.one_of(products, mixtures))
def test_what_is_sampled_belongs(space: Space):
    assert space.contains(space.sample(_draws())).all()


@given(products)
def test_points_are_all_different_members(space: Product):
    if space.size is None:
        with pytest.raises(ValueError, match="finite space"):
            space.points()
        return
    points = space.points()
    table = np.stack([np.asarray(c, float) for c in points], axis=1)
    assert len(np.unique(table, axis=0)) == len(table) == space.size
    assert space.contains(points).all()


def test_minus_and_its_rest_part_the_whole():
    whole = grid_space(4)
    hole = Product(
        scale=Interval(0.7, 2), orientation=Interval(0, 3), x=Interval(-1, 2), y=Interval(-1, 2)
    )
    left = Minus(whole, hole)
    rest = Minus(whole, left)
    assert left.size + rest.size == whole.size
    assert rest.size == 2 * 2 * 4 * 4
    everything = whole.points()
    assert (left.contains(everything) ^ rest.contains(everything)).all()
    assert (rest.contains(everything) == hole.contains(everything)).all()


def test_minus_never_draws_from_the_hole():
    hole = continuous_space()
    hole = Product(hole.color, Interval(0.5, 0.9), hole.orientation, hole.x, hole.y)
    left = Minus(continuous_space(), hole)
    drawn = left.sample(_draws(2000))
    assert drawn.scale.min() >= 0.9
    assert np.histogram(drawn.scale, 5, (0.9, 1.0))[0].min() > 250


def test_minus_with_nothing_left_says_so():
    with pytest.raises(ValueError, match="hole smaller"):
        Minus(continuous_space(), continuous_space()).sample(_draws(3))


def test_a_mixture_is_drawn_by_its_weights():
    low, high = Product(scale=Values((0.5,))), Product(scale=Values((1.0,)))
    drawn = Mixture((low, high), (3, 1)).sample(_draws(8000))
    assert abs((drawn.scale == 0.5).mean() - 0.75) < 0.02


def test_a_mixture_of_mixtures_draws_evenly_within():
    parts = [Product(scale=Values((float(v),))) for v in range(1, 5)]
    inner = Mixture(tuple(parts[:2]), (1, 1))
    outer = Mixture((inner, Mixture(tuple(parts[2:]), (1, 1))), (1, 1))
    shares = np.bincount(outer.sample(_draws(8000)).scale.astype(int))[1:] / 8000
    assert np.abs(shares - 0.25).max() < 0.02


def test_a_mixture_ties_factors_together():
    tied = Mixture(
        tuple(Product(scale=Values((v,)), x=Values((v,))) for v in (0.5, 0.75, 1.0)), (1, 1, 1)
    )
    drawn = tied.sample(_draws())
    assert (drawn.scale == drawn.x).all()


@pytest.mark.parametrize("values", [(), (float("nan"),), (1.0, 1.0), ("a",), (True,)])
def test_values_must_be_distinct_finite_numbers(values):
    with pytest.raises((ValueError, TypeError)):
        Values(values)


@pytest.mark.parametrize("ends", [(1, 1), (2, 1), (0, float("inf")), (0, None)])
def test_an_interval_needs_two_ends_in_order(ends):
    with pytest.raises((ValueError, TypeError)):
        Interval(*ends)


@pytest.mark.parametrize("weights", [(), (1, 2), (0,), (-1,), (float("nan"),)])
def test_a_mixture_needs_a_positive_weight_a_part(weights):
    with pytest.raises(ValueError, match="weight"):
        Mixture((Product(),), weights)
