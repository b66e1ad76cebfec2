"""Accuracy on all classes and on those seen, from counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from everlearn.metrics import all_classes, summarise


def row(learned: int, correct: int, seen_correct: int, seen_total: int) -> dict[str, Any]:
    counts = {
        "correct": correct,
        "total": 10,
        "seen_correct": seen_correct,
        "seen_total": seen_total,
    }
    return {"kind": "all_classes", "step": 0, "learned": learned, **counts}


ROWS = [row(0, 2, 2, 4), row(2, 9, 9, 10), row(1, 4, 3, 6)]


def test_counts_become_shares_in_the_order_of_learning() -> None:
    found = all_classes(ROWS)
    assert found.learned.tolist() == [0, 1, 2]
    assert found.accuracy.tolist() == pytest.approx([0.2, 0.4, 0.9])
    assert found.seen_accuracy.tolist() == pytest.approx([0.5, 0.5, 0.9])


def test_the_later_of_two_rows_counts() -> None:
    assert all_classes([*ROWS, row(2, 5, 5, 10)]).accuracy.tolist() == pytest.approx(
        [0.2, 0.4, 0.5]
    )


def test_the_summary_has_the_last_and_the_mean_of_both() -> None:
    line = summarise(ROWS)
    assert line["all_classes_accuracy"] == pytest.approx(0.9)
    assert line["all_classes_average"] == pytest.approx(0.5)
    assert line["seen_classes_accuracy"] == pytest.approx(0.9)
    assert line["seen_classes_average"] == pytest.approx(1.9 / 3)


def test_what_was_not_measured_is_none() -> None:
    names = [
        f"{classes}_{name}"
        for classes in ("all_classes", "seen_classes")
        for name in ("accuracy", "average")
    ]
    assert [summarise([])[name] for name in names] == [None] * 4
    nothing_seen = summarise([row(0, 3, 0, 0)])
    assert [nothing_seen[name] for name in names] == [0.3, 0.3, None, None]
    assert all_classes([]).learned.dtype == np.int64


def test_more_correct_answers_than_images_are_refused() -> None:
    with pytest.raises(ValueError, match="found 11 of 10"):
        summarise([row(0, 11, 1, 4)])
