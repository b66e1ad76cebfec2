"""Numbers in words."""

from __future__ import annotations

import pytest

from everlearn.report import numbers


@pytest.mark.parametrize(
    ("value", "words"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (999_940, "999.9 kB"), (999_960, "1.0 MB"),
     (3_081_976, "3.1 MB"), (2.5e9, "2.5 GB"), (5e15, "5000.0 TB")],
)  # fmt: skip
def test_bytes_have_up_to_three_digits(value, words):
    assert numbers.size(value) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.04, "0.0 s"), (99.94, "99.9 s"), (120, "2.0 min"), (5940, "99.0 min"), (7200, "2.0 h")],
)
def test_times_change_their_unit(value, words):
    assert numbers.seconds(value) == words


def test_differences_have_a_sign_and_nothing_has_none_below():
    assert numbers.change(-0.25) == "−0.250"
    assert numbers.change(0.25) == "+0.250"
    assert numbers.share(-0.0001) == "0.000"


def test_small_chances_are_bounded():
    assert numbers.chance(0.0004) == "< 0.001"
    assert numbers.chance(0.25) == "0.250"
