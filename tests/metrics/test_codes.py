"""Numbers of probes of codes, of latents and of environments found, by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from everlearn.metrics.codes import (
    accuracy_change,
    ends,
    lowest_accuracy_change,
    max_accuracy,
    min_square_error,
    probed,
    square_error_change,
)
from everlearn.metrics.environments import environments
from everlearn.metrics.latents import latents
from everlearn.metrics.rows import NotMeasuredError


def row(
    step: int,
    learned: int,
    tested: int,
    right: int,
    squares: list[float] | None = None,
    nats: float | None = None,
) -> dict[str, Any]:
    when = {"kind": "codes", "step": step, "learned": learned, "tested": tested}
    return {**when, "right": right, "total": 10, "squares": squares, "nats": nats}


# Task 0 moves, task 1 stands still; two steps a task, and a third task comes last.
ROWS = [
    row(0, -1, 0, 1, [2.0, 4.0], 900.0),
    row(1, 0, 0, 7, [0.2, 0.4], 500.0),
    row(2, 0, 0, 9, [0.1, 0.3], 400.0),
    row(4, 1, 0, 5, [0.6, 0.2], 600.0),
    row(4, 1, 1, 6, None, 300.0),
    row(6, 2, 0, 4, [0.5, 0.7], 700.0),
    row(6, 2, 1, 8, None, 200.0),
    row(6, 2, 2, 10, [0.1, 0.1], 100.0),
]


def test_rows_become_a_series_for_each_environment() -> None:
    found = probed(ROWS)
    assert [*found] == [0, 1, 2]
    assert found[0].step.tolist() == [0, 1, 2, 4, 6]
    assert found[0].learned.tolist() == [-1, 0, 0, 1, 2]
    assert found[0].accuracy.tolist() == pytest.approx([0.1, 0.7, 0.9, 0.5, 0.4])
    assert found[0].square_error.tolist() == pytest.approx([0.3, 0.03, 0.02, 0.04, 0.06])
    assert found[0].error.tolist() == pytest.approx([90, 50, 40, 60, 70])
    assert np.isnan(found[1].square_error).all()


def test_the_later_of_two_rows_for_one_moment_holds_and_order_does_not_matter() -> None:
    rows = [row(6, 2, 0, 1), *ROWS[::-1], row(2, 0, 0, 3)]
    assert probed(rows)[0].accuracy.tolist() == pytest.approx([0.1, 0.7, 0.3, 0.5, 0.4])


def test_the_best_values_are_averaged_over_environments() -> None:
    found = probed(ROWS)
    assert max_accuracy(found) == pytest.approx((0.9 + 0.8 + 1.0) / 3)
    assert min_square_error(found) == pytest.approx((0.02 + 0.01) / 2)


def test_changes_go_from_the_end_of_the_own_stage_to_the_end() -> None:
    found = probed(ROWS)
    assert accuracy_change(found) == pytest.approx((-0.5 + 0.2) / 2)
    assert accuracy_change(found, include_last=True) == pytest.approx((-0.5 + 0.2 + 0) / 3)
    assert square_error_change(found) == pytest.approx(0.04)
    assert square_error_change(found, include_last=True) == pytest.approx(0.04 / 2)


def test_the_lowest_change_is_after_the_own_stage_and_counts_no_recovery() -> None:
    assert lowest_accuracy_change(probed(ROWS)) == pytest.approx((-0.5 + 0.2) / 2)
    back = [*ROWS, row(8, 3, 0, 8), row(8, 3, 1, 1), row(8, 3, 2, 10)]
    assert accuracy_change(probed(back)) == pytest.approx((-0.1 - 0.5 + 0) / 3)
    assert lowest_accuracy_change(probed(back)) == pytest.approx((-0.5 - 0.5 + 0) / 3)


def test_environments_to_come_count_for_the_best_but_have_not_changed() -> None:
    found = probed([*ROWS, row(2, 0, 3, 5), row(6, 2, 3, 4)])
    assert max_accuracy(found) == pytest.approx((0.9 + 0.8 + 1.0 + 0.5) / 4)
    assert accuracy_change(found, include_last=True) == pytest.approx((-0.5 + 0.2 + 0) / 3)


def test_any_value_can_be_read_when_an_environment_was_left_and_in_the_end() -> None:
    both = ends(probed([*ROWS, row(6, 2, 3, 4)]), lambda one: one.error)
    assert both.environment.tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(both.own, [40, 30, 10, np.nan])
    np.testing.assert_allclose(both.final, [70, 20, 10, np.nan])


def test_what_was_not_measured_is_said() -> None:
    numbers = (max_accuracy, min_square_error, accuracy_change, square_error_change)
    for number in (*numbers, lowest_accuracy_change):
        with pytest.raises(NotMeasuredError):
            number(probed([]))
    with pytest.raises(NotMeasuredError, match="at the end of an earlier stage"):
        accuracy_change(probed(ROWS[:3]))
    with pytest.raises(NotMeasuredError, match="position"):
        min_square_error(probed([ROWS[4]]))


def described(learned: int, tested: int, used: Any, mask: Any) -> dict[str, Any]:
    when = {"kind": "latents", "step": learned, "learned": learned, "tested": tested}
    return {**when, "used": used, "mask": mask}


def test_latents_at_work_are_used_and_not_masked_as_they_were_last() -> None:
    rows = [
        described(1, 0, [1, 1, 1, 1, 1], [1, 1, 1, 1, 1]),
        described(1, 3, [1, 1, 1, 1, 1], [1, 1, 1, 1, 1]),
        described(2, 2, [0, 0, 0, 0, 1], [1, 1, 1, 1, 0]),
        described(2, 1, [1, 1, 1, 0, 0], [0, 1, 1, 1, 1]),
        described(2, 0, [1, 1, 0, 0, 0], [1, 1, 1, 1, 1]),
    ]
    found = latents(rows)
    assert found.tested.tolist() == [0, 1, 2]
    assert found.at_work.astype(int).tolist() == [[1, 1, 0, 0, 0], [0, 1, 1, 0, 0], [0] * 5]
    assert found.used == 3
    third = 1 / 3
    expected = [[1, third, 0], [third, 1, 0], [0, 0, np.nan]]
    np.testing.assert_allclose(found.overlap, expected)
    with pytest.raises(NotMeasuredError, match="latents that are used"):
        latents([described(0, 0, None, None)])


def noted(*opened: float | None, ends: tuple[int, ...] = (10, 20, 30)) -> list[dict[str, Any]]:
    steps = {f"opened_{number}": step for number, step in enumerate(opened, 1)}
    count = 1 + sum(step is not None for step in opened)
    early = [
        {"kind": "task", "learned": task, "step": step, "notes": {"environments": 1.0}}
        for task, step in enumerate(ends[:-1])
    ]
    notes = {"environments": float(count), "active": 0.0, **steps}
    return [*early, {"kind": "task", "learned": len(ends) - 1, "step": ends[-1], "notes": notes}]


def test_environments_opened_in_their_own_stages_are_exact() -> None:
    found = environments(noted(11.0, 25.0, None))
    assert (found.opened, found.true, found.missed, found.false) == (3, 3, 0, 0)
    assert found.delays.tolist() == [1, 5]
    assert found.exact


def test_what_is_opened_elsewhere_is_false_and_what_is_not_opened_is_missed() -> None:
    found = environments(noted(7.0, 10.0, 12.0, 15.0))
    assert (found.opened, found.true, found.missed, found.false) == (5, 3, 1, 3)
    np.testing.assert_allclose(found.delays, [2, np.nan])
    assert not found.exact
    # As many as there were, but in the wrong places.
    assert not environments(noted(12.0, 15.0)).exact
    late = environments(noted(20.0, 21.0))
    assert (late.delays.tolist(), late.exact) == ([10, 1], True)


def test_an_environment_that_comes_back_is_not_opened_again() -> None:
    known = environments(noted(11.0), kinds=[0, 1, 0])
    assert (known.true, known.exact, known.delays.tolist()) == (2, True, [1])
    again = environments(noted(11.0, 22.0), kinds=[0, 1, 0])
    assert (again.exact, again.false) == (False, 1)
    with pytest.raises(ValueError, match="environments of 3 tasks, found 2"):
        environments(noted(), kinds=[0, 1])


def test_learners_that_note_no_environments_are_not_measured() -> None:
    for rows in ([], [{"kind": "task", "learned": 0, "step": 1}]):
        with pytest.raises(NotMeasuredError, match="no task row notes"):
            environments(rows)
