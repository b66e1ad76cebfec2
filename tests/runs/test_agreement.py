"""Repeated rows agree bit for bit, within an interval, or not."""

from __future__ import annotations

from typing import Any

import pytest

from everlearn.runs.agreement import compare_rows

Rows = list[Any]


def run_rows(*correct: int, seconds: float = 1.0, total: int = 1000) -> Rows:
    """Rows of a run that was tested after every task, on the first task."""
    tests = [
        {"kind": "test", "learned": task, "step": task, "tested": 0, "correct": n, "total": total}
        for task, n in enumerate(correct)
    ]
    costs = [
        {"kind": "task", "learned": task, "step": task, "loss": 0.5, "seconds": seconds}
        for task in range(len(correct))
    ]
    return [*tests, *costs]


def test_times_and_the_order_of_costs_do_not_count() -> None:
    recorded = run_rows(900, 800)
    repeated = sorted(run_rows(900, 800, seconds=2.0), key=lambda row: row["learned"])
    assert compare_rows(recorded, repeated) == ("same bits", "")


# Wilson's 95 % interval of 900 of 1000, by hand: (0.9 + 1.9208/1000 ± 1.96 sqrt(0.09/1000 +
# 0.9604/1000²)) / (1 + 3.8415/1000) = 0.8799 to 0.9171.
@pytest.mark.parametrize(
    ("correct", "verdict"),
    [
        (880, "within the interval"),
        (917, "within the interval"),
        (879, "differs"),
        (918, "differs"),
    ],
)
def test_accuracy_may_move_within_wilsons_interval(correct: int, verdict: str) -> None:
    found = compare_rows(run_rows(900, 800), run_rows(correct, 800))
    assert found.verdict == verdict
    assert f"900, repeated {correct}" in found.detail or "900 of 1000" in found.detail


def test_the_interval_over_three_seeds_counts_where_it_is_wider() -> None:
    # Mean 0.9, deviation 0.05: half of Student's interval is 4.303 * 0.05 / sqrt(3) = 0.124.
    others = [run_rows(850), run_rows(950)]
    assert compare_rows(run_rows(900), run_rows(780), others).verdict == "within the interval"
    assert compare_rows(run_rows(900), run_rows(770), others).verdict == "differs"
    assert compare_rows(run_rows(900), run_rows(780), others[:1]).verdict == "differs"


def test_a_missing_row_without_counts_differs() -> None:
    open_set = {"kind": "open-set", "learned": 0, "step": 0, "scores": [0.1, 0.9]}
    recorded = [*run_rows(900), open_set]
    found = compare_rows(recorded, run_rows(901))
    assert found.verdict == "differs"
    assert found.detail == "row 'open-set' after task 0: the row is not repeated"
    assert compare_rows(run_rows(901), recorded).verdict == "differs"
    assert compare_rows(recorded, [*run_rows(901), open_set]).verdict == "within the interval"


def test_a_missing_row_and_another_number_of_images_differ() -> None:
    assert compare_rows(run_rows(900, 800), run_rows(900)).verdict == "differs"
    assert compare_rows(run_rows(900), run_rows(900, 800)).verdict == "differs"
    assert compare_rows(run_rows(900), run_rows(900, total=1001)).verdict == "differs"


def test_the_first_difference_names_the_row_and_the_key() -> None:
    repeated = run_rows(900, 800)
    repeated[-1]["loss"] = 0.25
    found = compare_rows(run_rows(900, 800), repeated)
    assert found == ("within the interval", "row 'task' after task 1: loss is 0.5, repeated 0.25")


def test_rows_without_counts_agree_only_bit_for_bit() -> None:
    recorded: Rows = [{"kind": "disentanglement", "learned": 0, "step": 1, "mig": 0.5}]
    assert compare_rows(recorded, recorded).verdict == "same bits"
    assert compare_rows(recorded, [{**recorded[0], "mig": 0.6}]).verdict == "differs"
