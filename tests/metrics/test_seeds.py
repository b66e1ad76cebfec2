"""Several seeds: Student's t, spreads, paired comparisons."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everlearn.metrics import aggregate, compare, student

DIFFERENCES = st.lists(st.integers(-6, 6), min_size=2, max_size=9)


@pytest.mark.parametrize(
    ("confidence", "freedom", "t"),
    [
        *((0.95, 1, 12.7062), (0.95, 2, 4.3027), (0.95, 4, 2.7764), (0.95, 9, 2.2622)),
        *((0.95, 30, 2.0423), (0.95, 1000, 1.9623), (0.99, 2, 9.9248), (0.99, 5, 4.0321)),
        (0.9, 3, 2.3534),
    ],
)
def test_quantiles_agree_with_printed_tables(confidence, freedom, t):
    assert student.quantile(confidence, freedom) == pytest.approx(t, abs=5e-5)


@given(st.floats(-1e6, 1e6))
def test_one_and_two_degrees_of_freedom_agree_with_their_closed_forms(t):
    assert student.two_sided(t, 1) == pytest.approx(2 / math.pi * math.atan2(1, abs(t)), rel=1e-10)
    root = math.sqrt(2 + t * t)
    assert student.two_sided(t, 2) == pytest.approx(2 / (root * (root + abs(t))), rel=1e-10)


@pytest.mark.parametrize("freedom", [3, 10, 57, 1000, 20_000])
@pytest.mark.parametrize("t", [0.01, 0.7, 2.0, 4.0])
def test_the_tail_agrees_with_integrating_the_density(freedom, t):
    x = np.linspace(0, t, 20_001)
    log_scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    density = np.exp(log_scale - (freedom + 1) / 2 * np.log1p(x**2 / freedom))
    inside = 2 * np.trapezoid(density, x) / math.sqrt(freedom * math.pi)
    assert student.two_sided(t, freedom) == pytest.approx(1 - inside, abs=1e-8)


@given(st.floats(0.01, 0.9999), st.integers(1, 300))
def test_the_quantile_undoes_the_tail(confidence, freedom):
    t = student.quantile(confidence, freedom)
    assert student.two_sided(t, freedom) == pytest.approx(1 - confidence, rel=1e-9)


def test_the_tail_ends_at_one_and_nothing():
    assert student.two_sided(0, 5) == 1
    assert student.two_sided(math.inf, 5) == 0


def test_a_hand_spread():
    mean, sd, low, high, seeds = aggregate([0.6, 0.7, 0.8])
    assert (mean, sd, seeds) == (pytest.approx(0.7), pytest.approx(0.1), 3)
    assert high - mean == pytest.approx(4.30265 * 0.1 / math.sqrt(3), abs=1e-6)
    assert mean - low == pytest.approx(high - mean)


@pytest.mark.slow
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


def test_other_seeds_and_numbers_that_are_none_are_refused():
    with pytest.raises(ValueError, match=r"same seeds, found \[0, 1\] and \[0, 2\]"):
        compare({0: 0.1, 1: 0.2}, {0: 0.1, 2: 0.2})
    with pytest.raises(ValueError, match="must be finite"):
        aggregate([0.1, math.nan])
    with pytest.raises(ValueError, match="up to 40 seeds"):
        compare(dict.fromkeys(range(41), 0.1), dict.fromkeys(range(41), 0.2))


def test_a_hand_comparison_pairs_by_seed():
    # Differences 1, 2, 3: t = 2 / (1 / sqrt 3), and with 2 degrees of freedom p = 1 - t / sqrt(2 + t^2).
    found = compare({5: 11, 6: 22, 7: 33}, {7: 30, 6: 20, 5: 10})
    assert found.spread.mean == pytest.approx(2)
    assert found.spread.sd == pytest.approx(1)
    assert found.t_test == pytest.approx(1 - math.sqrt(12 / 14))
    assert found.sign_flip == 2 / 8


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
    first, second = {0: 0.3, 1: 0.5, 2: 0.1}, {0: 0.2, 1: 0.6, 2: 0.4}
    one, other = compare(first, second), compare(second, first)
    assert one.spread.mean == pytest.approx(-other.spread.mean)
    assert one.t_test == pytest.approx(other.t_test)
    assert one.sign_flip == other.sign_flip
