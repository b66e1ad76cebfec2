"""Accuracy on all classes and on those met, from counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from everlearn.metrics import summarise, whole


def row(learned: int, right: int, met_right: int, met_total: int) -> dict[str, Any]:
    counts = {"right": right, "total": 10, "met_right": met_right, "met_total": met_total}
    return {"kind": "whole", "step": 0, "learned": learned, **counts}


ROWS = [row(0, 2, 2, 4), row(2, 9, 9, 10), row(1, 4, 3, 6)]


def test_counts_become_shares_in_the_order_of_learning() -> None:
    found = whole(ROWS)
    assert found.learned.tolist() == [0, 1, 2]
    assert found.accuracy.tolist() == pytest.approx([0.2, 0.4, 0.9])
    assert found.met_accuracy.tolist() == pytest.approx([0.5, 0.5, 0.9])


def test_the_later_of_two_rows_holds() -> None:
    assert whole([*ROWS, row(2, 5, 5, 10)]).accuracy.tolist() == pytest.approx([0.2, 0.4, 0.5])


def test_the_summary_has_the_last_and_the_mean_of_both() -> None:
    line = summarise(ROWS)
    assert line["whole_accuracy"] == pytest.approx(0.9)
    assert line["whole_average"] == pytest.approx(0.5)
    assert line["met_accuracy"] == pytest.approx(0.9)
    assert line["met_average"] == pytest.approx(1.9 / 3)


def test_what_was_not_measured_is_none() -> None:
    names = ("whole_accuracy", "whole_average", "met_accuracy", "met_average")
    assert [summarise([])[name] for name in names] == [None] * 4
    nothing_met = summarise([row(0, 3, 0, 0)])
    assert [nothing_met[name] for name in names] == [0.3, 0.3, None, None]
    assert whole([]).learned.dtype == np.int64


def test_more_right_ones_than_questions_are_refused() -> None:
    with pytest.raises(ValueError, match="found 11 of 10"):
        summarise([row(0, 11, 1, 4)])
