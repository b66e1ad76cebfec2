"""Correct answers are counted for each number of choices."""

from __future__ import annotations

from math import isnan

from everlearn.metrics import Tally, tally


def test_correct_answers_are_counted_for_each_number_of_choices() -> None:
    rows = [
        {"n": 3, "answer": 1, "chosen": 2},
        {"n": 2, "answer": 0, "chosen": 0},
        {"n": 2, "answer": 1, "chosen": -1},
    ]
    assert list(tally(rows).items()) == [(2, Tally(1, 2)), (3, Tally(0, 1))]


def test_accuracy_is_the_share_of_correct_answers() -> None:
    assert Tally(3, 4).accuracy == 0.75
    assert isnan(Tally(0, 0).accuracy)
