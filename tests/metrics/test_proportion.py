"""Shares and their intervals."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import binomtest

from everlearn.metrics import share, wilson

COUNT = st.integers(1, 10**6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(COUNT, st.floats(0.5, 0.999))
def test_the_ends_are_z_standard_errors_from_the_share(count, confidence):
    """Wilson's interval is made of the p with |share - p| <= z sqrt(p (1 - p) / n)."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    correct, total = count
    for end in wilson(correct, total, confidence):
        off = (correct / total - end) ** 2
        assert off == pytest.approx(z**2 * end * (1 - end) / total, rel=1e-6, abs=1e-12)


@given(COUNT)
@example((0, 17))
@example((17, 17))
def test_the_interval_holds_the_share_and_stays_within_bounds(count):
    low, high = wilson(*count)
    assert 0 <= low <= share(*count) <= high <= 1


@given(COUNT)
def test_correct_and_wrong_answers_change_places(count):
    correct, total = count
    low, high = wilson(correct, total)
    assert (1 - high, 1 - low) == pytest.approx(wilson(total - correct, total), abs=1e-12)


@given(COUNT, st.floats(0.5, 0.999))
def test_intervals_are_those_of_scipy(count, confidence):
    expected = binomtest(*count).proportion_ci(confidence, method="wilson")
    assert wilson(*count, confidence) == pytest.approx(tuple(expected), abs=1e-12)


def test_a_published_value():
    # Newcombe 1998, Statistics in Medicine 17, table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
    low, high = wilson([81, 15, 0, 1], [263, 148, 20, 29])
    np.testing.assert_allclose(low, [0.2553, 0.0624, 0.0, 0.0061], atol=5e-5)
    np.testing.assert_allclose(high, [0.3662, 0.1605, 0.1611, 0.1718], atol=5e-5)


def test_arrays_give_what_single_counts_give_and_nothing_counted_gives_nan():
    low, high = wilson([[3, 0], [9, 5]], [[10, 0], [9, 7]])
    assert low.shape == (2, 2)
    assert np.isnan(low[0, 1])
    assert np.isnan(high[0, 1])
    assert (low[1, 1], high[1, 1]) == wilson(5, 7)


@pytest.mark.parametrize(("correct", "total"), [(3, 2), (-1, 4), ([1, 9], [1, 8])])
def test_impossible_counts_are_refused(correct, total):
    with pytest.raises(ValueError, match=r"must lie in 0 \.\. its total"):
        share(correct, total)


def test_fractions_in_place_of_counts_are_refused():
    with pytest.raises(TypeError, match="whole numbers"):
        wilson(0.9, 1)


def test_certainty_is_refused():
    with pytest.raises(ValueError, match="confidence"):
        wilson(1, 2, 1.0)
