"""Verdicts follow from numbers."""

from __future__ import annotations

import pytest

from everlearn.experiments.framework.verdicts import (
    compare_number,
    format_values,
    judge_claim,
    unpublished,
)
from everlearn.report.verdict import check_verdict

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    ("published", "ours", "word"),
    [
        (0.98, 0.98, "equal"),
        (0.98, 0.9849, "equal"),
        (0.98, 0.9751, "equal"),
        (0.98, 0.986, "better"),
        (0.98, 0.974, "worse"),
        (1.0, 1.0, "equal"),
        (1.0, 0.9949, "worse"),
        (0.4, 0.1, "worse"),
        (0.4, 0.9, "better"),
    ],
)
def test_a_number_is_better_equal_or_worse(published, ours, word):
    assert compare_number("n", published, ours).verdict == word


@pytest.mark.parametrize("published", [1.0, 0.98, 0.96, 0.95, 0.93, 0.92, 0.4])
def test_a_difference_of_half_the_last_digit_is_equal(published):
    assert compare_number("n", published, round(published - 0.005, 3)).verdict == "equal"
    assert compare_number("n", published, round(published + 0.005, 3)).verdict == "equal"


def test_a_number_is_shown_beside_the_published_one():
    verdict = compare_number("Area", 0.9, 0.87654, "because")
    assert verdict == ("Area", "0.90", "0.8765", "worse", "because")


def test_a_claim_holds_or_not():
    assert judge_claim("It falls", "0.1", True).verdict == "equal"
    assert judge_claim("It falls", "0.1", False).verdict == "worse"


def test_unmeasured_results_are_not_comparable():
    for verdict in (
        judge_claim("s", "", None, "a why"),
        compare_number("n", 0.5, None, "a why"),
        unpublished("o", ""),
    ):
        assert check_verdict(verdict).ours == "not measured"
        assert verdict.verdict == "not comparable"
        assert verdict.why == "no rows yet"


def test_unpublished_results_are_not_comparable():
    assert unpublished("Ours", "0.5") == (
        "Ours",
        "none",
        "0.5",
        "not comparable",
        "no value was published",
    )


def test_known_values_are_formatted_to_three_digits():
    assert format_values({"a": 0.12345, "b": None, "c": 1.0}) == "a: 0.123; c: 1.000"
    assert format_values({"a": 0.12345}, 4) == "a: 0.1235"
    assert format_values({"b": None}) == ""
