"""The rule behind verdicts: intervals over seeds by hand, and by scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from everlearn.experiments.framework.rule import (
    Lead,
    judge_leads,
    judge_number,
    lead_above,
    lead_below,
    lead_of_share,
    lead_over,
    seeds_to_show,
    welch_interval,
)

T = 4.302653  # Student's quantile of 0.975 with two degrees of freedom, from a table


def by_seed(*values: float, first: int = 0) -> dict[int, float]:
    return dict(enumerate(values, first))


def test_the_interval_of_three_seeds_is_students():
    # mean 0.92, deviation 0.02
    lead = lead_above(by_seed(0.90, 0.92, 0.94), 0.9)
    half = T * 0.02 / 3**0.5
    assert lead == (pytest.approx(0.02 - half), pytest.approx(0.02 + half), 3)


def test_a_shortfall_is_the_negative_of_an_excess():
    values = by_seed(0.1, 0.3, 0.2)
    above = lead_above(values, 0.5)
    below = lead_below(values, 0.5)
    assert below == (pytest.approx(-above.high), pytest.approx(-above.low), 3)


@pytest.mark.parametrize("values", [(0.5,), (0.5, 0.5)])
def test_fewer_than_three_seeds_decide_nothing(values):
    found = by_seed(*values)
    others = by_seed(0.1, 0.1, 0.1)
    leads = (lead_above(found, 0.1), lead_below(found, 0.1), lead_over(found, others))
    for lead in (*leads, lead_of_share(0, len(found), 0.8)):
        assert lead == (-np.inf, np.inf, len(values))
        assert judge_leads([lead]) == "undecided"
        assert judge_number(lead, 2) == "undecided"


def test_without_numbers_there_is_no_lead():
    assert lead_above({}, 0.5) is None
    assert lead_below({}, 0.5) is None
    assert lead_over({}, by_seed(1.0)) is None
    assert lead_over(by_seed(1.0), {}) is None
    assert lead_of_share(0, 0, 0.5) is None


def test_differences_are_paired_over_shared_seeds():
    # Far apart from seed to seed, and always 0.01 apart: only pairs show it. Seed 3 has no partner.
    first = by_seed(0.21, 0.51, 0.91, 0.0)
    second = by_seed(0.20, 0.50, 0.90)
    assert lead_over(first, second) == (pytest.approx(0.01), pytest.approx(0.01), 3)
    assert lead_over(first, second, 0.03) == (pytest.approx(-0.02), pytest.approx(-0.02), 3)


def test_without_shared_seeds_the_interval_is_welchs():
    first, second = (0.3, 0.5, 0.4, 0.45), (0.1, 0.2, 0.25)
    oracle = stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    lead = lead_over(by_seed(*first), by_seed(*second, first=2), 0.1)  # they share seeds 2 and 3
    assert lead == (pytest.approx(oracle.low - 0.1), pytest.approx(oracle.high - 0.1), 3)
    assert welch_interval((0.5, 0.5, 0.5), (0.2, 0.2, 0.2)) == pytest.approx((0.3, 0.3))


def test_a_share_of_seeds_has_wilsons_interval():
    # 5 of 5: the lower end is 5 / (5 + 1.96^2), the upper 1
    lead = lead_of_share(5, 5, 0.8)
    assert lead == (pytest.approx(5 / (5 + 1.959964**2) - 0.8), pytest.approx(0.2), 5)


@pytest.mark.parametrize(("share", "seeds"), [(0.8, 16), (2 / 3, 8)])
def test_a_share_is_shown_by_enough_seeds_that_all_succeed(share, seeds):
    assert seeds_to_show(share) == seeds
    assert judge_leads([lead_of_share(seeds, seeds, share)]) == "equal"
    assert judge_leads([lead_of_share(seeds - 1, seeds - 1, share)]) == "undecided"


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (0.0051, 0.5, "better"),
        (0.005, 0.5, "undecided"),  # the published number may be higher by half of its last digit
        (-0.5, -0.0051, "worse"),
        (-0.5, -0.005, "undecided"),
        (-0.004, 0.004, "equal"),  # within the digits that were printed
        (-0.01, 0.01, "equal"),
        (0.004, 0.01, "equal"),
        (-0.011, 0.0, "undecided"),
        (-0.011, 0.011, "undecided"),
        (0.006, 0.009, "better"),
    ],
)
def test_a_number_is_judged_by_its_whole_interval(low, high, word):
    assert judge_number(Lead(low, high, 3), digits=2) == word


def test_a_coarsely_printed_number_equals_what_rounds_to_it():
    assert judge_number(Lead(-0.04, 0.04, 3), digits=1) == "equal"
    assert judge_number(Lead(0.03, 0.06, 3), digits=1) == "undecided"
    assert judge_number(Lead(0.051, 0.06, 3), digits=1) == "better"


def test_the_margin_of_equality_is_a_choice():
    assert judge_number(Lead(-0.02, 0.02, 3), digits=2, margin=0.03) == "equal"


@pytest.mark.parametrize("published", [1.0, 0.98, 0.96, 0.95, 0.93, 0.92, 0.4])
def test_a_difference_of_half_the_last_digit_is_equal(published):
    for ours in (round(published - 0.005, 3), round(published + 0.005, 3)):
        lead = lead_above(by_seed(ours, ours, ours), published)
        assert judge_number(lead, digits=2) == "equal"


@pytest.mark.parametrize(
    ("leads", "word"),
    [
        ([(0.1, 0.2)], "equal"),
        ([(-0.2, -0.1)], "worse"),
        ([(-0.1, 0.1)], "undecided"),
        ([(0.0, 0.0)], "undecided"),
        ([(0.1, 0.2), (0.3, 0.4)], "equal"),
        ([(0.1, 0.2), (-0.1, 0.4)], "undecided"),
        ([(0.1, 0.2), (-0.1, 0.4), (-0.3, -0.2)], "worse"),
    ],
)
def test_a_statement_holds_if_all_its_leads_are_above_zero(leads, word):
    assert judge_leads([Lead(low, high, 3) for low, high in leads]) == word
