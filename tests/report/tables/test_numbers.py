"""Formats of numbers."""

from __future__ import annotations

import pytest

from everlearn.report.tables import numbers


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (999_940, "999.9 kB"), (999_960, "1.0 MB"),
     (3_081_976, "3.1 MB"), (2.5e9, "2.5 GB"), (5e15, "5000.0 TB")],
)  # fmt: skip
def test_bytes_have_up_to_three_digits(value, text):
    assert numbers.byte_size(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.04, "0.0 s"), (99.94, "99.9 s"), (120, "2.0 min"), (5940, "99.0 min"), (7200, "2.0 h")],
)
def test_times_change_their_unit(value, text):
    assert numbers.duration(value) == text


def test_differences_have_a_sign_and_a_rounded_zero_has_none():
    assert numbers.signed(-0.25) == "−0.250"
    assert numbers.signed(0.25) == "+0.250"
    assert numbers.fraction(-0.0001) == "0.000"
    assert numbers.signed(-0.0001) == numbers.signed(0.0001) == "0.000"


def test_small_p_values_are_shown_as_a_bound():
    assert numbers.p_value(0.0004) == "< 0.001"
    assert numbers.p_value(0.25) == "0.250"
