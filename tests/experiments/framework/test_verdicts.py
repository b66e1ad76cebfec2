"""Verdicts follow from numbers."""

from __future__ import annotations

import pytest

from everlearn.experiments.framework.rule import Lead
from everlearn.experiments.framework.verdicts import (
    compare_number,
    format_values,
    judge_statement,
    unpublished,
)
from everlearn.report.verdict import Verdict, check_verdict

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ((0.9195, 0.92, 0.9205), "equal"),  # ± 0.0012
        ((0.925, 0.926, 0.927), "equal"),  # ± 0.0025: not wholly above 0.925, within 0.93
        ((0.930, 0.931, 0.932), "better"),
        ((0.908, 0.909, 0.910), "worse"),
        ((0.90, 0.92, 0.94), "undecided"),  # ± 0.05
        ((0.92,), "undecided"),
        ((0.5, 0.5), "undecided"),
    ],
)
def test_a_number_is_compared_by_its_interval_over_seeds(values, word):
    assert compare_number("n", 0.92, dict(enumerate(values))).verdict == word


def test_a_number_is_shown_with_its_interval_beside_the_published_one():
    verdict = compare_number("Area", 0.9, {0: 0.87, 1: 0.87, 2: 0.87}, "because")
    assert verdict == Verdict("Area", "0.90", "0.8700 (0.8700 to 0.8700)", "worse", "because")
    coarse = compare_number("Area", 0.4, {4: 0.1234}, digits=1)
    assert coarse == Verdict("Area", "0.4", "0.1234 (1 seed)", "undecided", "")


def test_equal_counts_are_as_uncertain_as_their_images():
    perfect = {0: 1.0, 1: 1.0, 2: 1.0}
    assert compare_number("n", 1.0, perfect).verdict == "equal"
    few = compare_number("n", 1.0, perfect, draws=300)
    # Wilson 1927 for 300 of 300: 1 / (1 + 1.96^2 / 300) = 0.98736
    assert (few.ours, few.verdict) == ("1.0000 (0.9874 to 1.0000)", "undecided")
    assert compare_number("n", 1.0, perfect, draws=3000).verdict == "equal"


@pytest.mark.parametrize(
    ("leads", "word", "why"),
    [
        ([(0.1, 0.2)], "equal", "a why; lead 0.1 to 0.2, 3 seeds"),
        ([(-0.2, -0.1)], "worse", "a why; lead −0.2 to −0.1, 3 seeds"),
        ([(0.1, 0.2), (-0.1, 0.2)], "undecided", "a why; smallest lead −0.1 to 0.2, 3 seeds"),
    ],
)
def test_a_statement_is_judged_by_its_leads(leads, word, why):
    verdict = judge_statement("It falls", "0.1", [Lead(*ends, 3) for ends in leads], "a why")
    assert verdict == Verdict("It falls", "as stated", "0.1", word, why)


def test_the_lead_that_decides_is_cited_with_its_own_seeds():
    wide = Lead(-0.5, 0.4, 3)
    below = Lead(-0.2, -0.1, 5)
    assert judge_statement("s", "0.1", [wide, below]).why == "smallest lead −0.2 to −0.1, 5 seeds"
    unknown = Lead(-float("inf"), float("inf"), 2)
    assert judge_statement("s", "0.1", [below, unknown]).why.endswith("−0.1, 5 seeds")
    above = Lead(0.1, 0.2, 3)
    assert judge_statement("s", "0.1", [above, Lead(0.3, 0.4, 7)]).why.endswith("0.2, 3 seeds")
    assert judge_statement("s", "0.1", [above, unknown]).why == "2 seeds, too few to decide"


@pytest.mark.parametrize(
    ("lead", "word"), [(Lead(0.1, 0.2, 3), "undecided"), (Lead(-0.2, -0.1, 3), "worse")]
)
def test_one_lead_below_zero_decides_even_where_others_have_no_rows(lead, word):
    verdict = judge_statement("s", "0.1", [lead, None], names=["SI", "LwF"])
    assert (verdict.ours, verdict.verdict) == ("0.1", word)
    assert verdict.why.endswith("; no rows yet of: LwF")
    assert judge_statement("s", "0.1", [lead, None]).why.endswith(
        "; no rows yet of 1 of 2 comparisons"
    )


def test_a_statement_with_one_seed_is_undecided():
    verdict = judge_statement("s", "0.1", [Lead(-float("inf"), float("inf"), 1)])
    assert (verdict.verdict, verdict.why) == ("undecided", "1 seed, too few to decide")


def test_unmeasured_results_are_not_comparable():
    for verdict in (
        judge_statement("s", "", [], "a why"),
        judge_statement("s", "", [None, None], "a why"),
        compare_number("n", 0.5, {}, "a why"),
        unpublished("o", ""),
    ):
        assert check_verdict(verdict).ours == "not measured"
        assert verdict.verdict == "not comparable"
        assert verdict.why == "no rows yet"
        assert not verdict.measured


def test_unpublished_results_are_not_comparable():
    assert unpublished("Ours", "0.5") == Verdict(
        "Ours", "none", "0.5", "not comparable", "no value was published"
    )


def test_known_values_are_formatted_to_three_digits():
    assert format_values({"a": 0.12345, "b": None, "c": 1.0}) == "a: 0.123; c: 1.000"
    assert format_values({"a": 0.12345}, 4) == "a: 0.1235"
    assert format_values({"b": None}) == ""
