"""Several seeds: intervals, spreads and paired comparisons."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from everlearn.metrics import aggregate, compare, compare_shared, half_width

DIFFERENCES = st.lists(st.integers(-6, 6), min_size=2, max_size=9)


@pytest.mark.parametrize(
    ("confidence", "freedom", "t"),
    [
        *((0.95, 1, 12.7062), (0.95, 2, 4.3027), (0.95, 4, 2.7764), (0.95, 9, 2.2622)),
        *((0.95, 30, 2.0423), (0.95, 1000, 1.9623), (0.99, 2, 9.9248), (0.99, 5, 4.0321)),
        (0.9, 3, 2.3534),
    ],
)
def test_half_widths_agree_with_printed_tables_of_t(confidence, freedom, t):
    seeds = freedom + 1
    assert half_width(math.sqrt(seeds), seeds, confidence) == pytest.approx(t, abs=5e-5)


@given(st.floats(0.01, 0.9999), st.integers(1, 300))
def test_intervals_are_those_of_scipy(confidence, freedom):
    low, high = stats.t.interval(confidence, freedom, scale=2 / math.sqrt(freedom + 1))
    assert half_width(2.0, freedom + 1, confidence) == pytest.approx(high, rel=1e-12)
    assert half_width(2.0, freedom + 1, confidence) == pytest.approx(-low, rel=1e-12)


def test_half_widths_of_arrays_are_those_of_their_entries():
    halves = half_width(np.array([0.1, 0.4]), 5)
    assert halves.tolist() == [half_width(0.1, 5), half_width(0.4, 5)]


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=12, unique=True))
def test_the_paired_t_test_is_that_of_scipy(differences):
    first = dict(enumerate(differences))
    expected = stats.ttest_1samp(differences, 0.0).pvalue
    assert compare(first, dict.fromkeys(first, 0.0)).t_test == pytest.approx(expected, rel=1e-9)


def test_a_spread_by_hand():
    mean, sd, low, high, seeds = aggregate([0.6, 0.7, 0.8])
    assert (mean, sd, seeds) == (pytest.approx(0.7), pytest.approx(0.1), 3)
    assert high - mean == pytest.approx(4.30265 * 0.1 / math.sqrt(3), abs=1e-6)
    assert mean - low == pytest.approx(high - mean)


@pytest.mark.integration
def test_student_intervals_cover_the_mean_as_often_as_they_say():
    draws = np.random.default_rng(0).normal(3.0, 2.0, (1000, 4))
    held = sum(low <= 3.0 <= high for _, _, low, high, _ in map(aggregate, draws.tolist()))
    assert held / 1000 == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize("values", [[], [0.5]])
def test_fewer_than_two_seeds_are_refused(values):
    with pytest.raises(ValueError, match=f"2 seeds or more, found {len(values)}"):
        aggregate(values)
    with pytest.raises(ValueError, match="2 seeds or more"):
        compare(dict(enumerate(values)), dict(enumerate(values)))


def test_different_seeds_and_values_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match=r"same seeds, found \[0, 1\] and \[0, 2\]"):
        compare({0: 0.1, 1: 0.2}, {0: 0.1, 2: 0.2})
    with pytest.raises(ValueError, match="must be finite"):
        aggregate([0.1, math.nan])
    with pytest.raises(ValueError, match="up to 40 seeds"):
        compare(dict.fromkeys(range(41), 0.1), dict.fromkeys(range(41), 0.2))


def test_a_comparison_by_hand_pairs_by_seed():
    # Differences 1, 2, 3: t = 2 / (1 / sqrt 3), and with 2 degrees of freedom p = 1 - t / sqrt(2 + t^2).
    found = compare({5: 11, 6: 22, 7: 33}, {7: 30, 6: 20, 5: 10})
    assert found.spread.mean == pytest.approx(2)
    assert found.spread.sd == pytest.approx(1)
    assert found.t_test == pytest.approx(1 - math.sqrt(12 / 14))
    assert found.sign_flip == 2 / 8


def test_methods_with_other_seeds_are_compared_over_those_of_both():
    # Over seeds 5, 6 and 7 the differences are 1, 2 and 3, as above.
    found = compare_shared({5: 11, 6: 22, 7: 33, 8: 0}, {4: 0, 7: 30, 6: 20, 5: 10}, 0.9)
    assert found == compare({5: 11, 6: 22, 7: 33}, {5: 10, 6: 20, 7: 30}, 0.9)
    assert compare_shared({0: 1, 1: 2, 2: 3}, {0: 1, 1: 2, 3: 3}) is None


def test_of_more_than_forty_shared_seeds_the_first_are_compared():
    values = {seed: float(seed) for seed in reversed(range(50))}
    found = compare_shared(values, dict.fromkeys(values, 0.0))
    assert found
    assert (found.spread.seeds, found.spread.mean) == (40, pytest.approx(39 / 2))


def test_equal_methods_do_not_differ_and_a_constant_gain_does():
    same = compare({0: 1, 1: 2}, {0: 1, 1: 2})
    assert (same.t_test, same.sign_flip) == (1, 1)
    gain = compare({0: 2, 1: 3}, {0: 1, 1: 2})
    assert (gain.t_test, gain.sign_flip) == (0, 0.5)


@given(DIFFERENCES)
def test_sign_flips_agree_with_trying_all_signs(differences):
    found = abs(sum(differences))
    signs = itertools.product([1, -1], repeat=len(differences))
    sums = [abs(sum(s * d for s, d in zip(row, differences, strict=True))) for row in signs]
    expected = sum(value >= found for value in sums) / len(sums)
    # Tenths, so that sums equal on paper are not equal in floats.
    first = {seed: difference / 10 for seed, difference in enumerate(differences)}
    assert compare(first, dict.fromkeys(first, 0.0)).sign_flip == pytest.approx(expected)


def test_forty_seeds_can_be_compared():
    found = compare(dict.fromkeys(range(40), 0.2), dict.fromkeys(range(40), 0.1))
    assert found.sign_flip == pytest.approx(2 / 2**40)


def test_swapping_the_methods_changes_the_sign_alone():
    first = {0: 0.3, 1: 0.5, 2: 0.1}
    second = {0: 0.2, 1: 0.6, 2: 0.4}
    forward = compare(first, second)
    backward = compare(second, first)
    assert forward.spread.mean == pytest.approx(-backward.spread.mean)
    assert forward.t_test == pytest.approx(backward.t_test)
    assert forward.sign_flip == backward.sign_flip
