"""The algebra of factor spaces: samples are members, and lists are complete."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everlearn.factors import (
    UNIFORMS_PER_SAMPLE,
    Difference,
    Interval,
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
    return np.random.default_rng(1).random((count, UNIFORMS_PER_SAMPLE))


@given(st.one_of(products, mixtures))
def test_samples_are_members(space: Space):
    assert space.contains(space.sample(_draws())).all()


@given(products)
def test_points_are_distinct_members_and_complete(space: Product):
    if space.size is None:
        with pytest.raises(ValueError, match="finite space"):
            space.points()
        return
    points = space.points()
    table = np.stack([np.asarray(c, float) for c in points], axis=1)
    assert len(np.unique(table, axis=0)) == len(table) == space.size
    assert space.contains(points).all()


def test_difference_and_its_complement_partition_the_space():
    base = grid_space(4)
    excluded = Product(
        scale=Interval(0.7, 2), orientation=Interval(0, 3), x=Interval(-1, 2), y=Interval(-1, 2)
    )
    left = Difference(base, excluded)
    rest = Difference(base, left)
    assert left.size + rest.size == base.size
    assert rest.size == 2 * 2 * 4 * 4
    everything = base.points()
    assert (left.contains(everything) ^ rest.contains(everything)).all()
    assert (rest.contains(everything) == excluded.contains(everything)).all()


def test_difference_never_samples_the_excluded_space():
    base = continuous_space()
    excluded = Product(base.color, Interval(0.5, 0.9), base.orientation, base.x, base.y)
    left = Difference(base, excluded)
    drawn = left.sample(_draws(2000))
    assert drawn.scale.min() >= 0.9
    assert np.histogram(drawn.scale, 5, (0.9, 1.0))[0].min() > 250


def test_sampling_an_empty_difference_raises():
    with pytest.raises(ValueError, match="excluded space smaller"):
        Difference(continuous_space(), continuous_space()).sample(_draws(3))


def test_mixture_samples_components_by_weight():
    low, high = Product(scale=Values((0.5,))), Product(scale=Values((1.0,)))
    drawn = Mixture((low, high), (3, 1)).sample(_draws(8000))
    assert abs((drawn.scale == 0.5).mean() - 0.75) < 0.02


def test_nested_mixtures_sample_uniformly_within_components():
    parts = [Product(scale=Values((float(v),))) for v in range(1, 5)]
    inner = Mixture(tuple(parts[:2]), (1, 1))
    outer = Mixture((inner, Mixture(tuple(parts[2:]), (1, 1))), (1, 1))
    shares = np.bincount(outer.sample(_draws(8000)).scale.astype(int))[1:] / 8000
    assert np.abs(shares - 0.25).max() < 0.02


def test_mixture_correlates_factors():
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
def test_interval_ends_must_be_finite_and_in_order(ends):
    with pytest.raises((ValueError, TypeError)):
        Interval(*ends)


@pytest.mark.parametrize("weights", [(), (1, 2), (0,), (-1,), (float("nan"),)])
def test_mixture_needs_one_positive_weight_per_component(weights):
    with pytest.raises(ValueError, match="weight"):
        Mixture((Product(),), weights)
