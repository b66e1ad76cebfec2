"""Verdicts follow from numbers as one would say by hand."""

from __future__ import annotations

import pytest

from everlearn.experiments.verdicts import listed, number, own, statement
from everlearn.report.verdict import check_verdict


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
    assert number("n", published, ours).verdict == word


@pytest.mark.parametrize("published", [1.0, 0.98, 0.96, 0.95, 0.93, 0.92, 0.4])
def test_half_of_the_last_figure_printed_is_still_equal(published):
    assert number("n", published, round(published - 0.005, 3)).verdict == "equal"
    assert number("n", published, round(published + 0.005, 3)).verdict == "equal"


def test_a_number_is_shown_beside_the_published_one():
    verdict = number("Area", 0.9, 0.87654, "because")
    assert verdict == ("Area", "0.90", "0.8765", "worse", "because")


def test_a_statement_holds_or_not():
    assert statement("It falls", "0.1", True).verdict == "equal"
    assert statement("It falls", "0.1", False).verdict == "worse"


def test_what_was_not_measured_is_not_comparable_for_want_of_rows():
    for verdict in (
        statement("s", "", None, "a why"),
        number("n", 0.5, None, "a why"),
        own("o", ""),
    ):
        assert check_verdict(verdict).ours == "not measured"
        assert verdict.verdict == "not comparable"
        assert verdict.why == "no rows yet"


def test_a_number_that_no_paper_has_is_not_comparable():
    assert own("Ours", "0.5") == ("Ours", "none", "0.5", "not comparable", "no value was published")


def test_known_numbers_are_listed_to_three_places():
    assert listed({"a": 0.12345, "b": None, "c": 1.0}) == "a: 0.123; c: 1.000"
    assert listed({"a": 0.12345}, 4) == "a: 0.1235"
    assert listed({"b": None}) == ""
