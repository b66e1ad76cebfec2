"""Metrics of code probes, latents and inferred environments, by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from everlearn.metrics.codes import (
    accuracy_change,
    code_probes,
    ends,
    lowest_accuracy_change,
    max_accuracy,
    min_position_error,
    position_error_change,
)
from everlearn.metrics.environments import inferred_environments
from everlearn.metrics.latents import active_latents
from everlearn.metrics.measured import NotMeasuredError


def row(
    step: int,
    learned: int,
    tested: int,
    correct: int,
    squared_errors: list[float] | None = None,
    error: float | None = None,
) -> dict[str, Any]:
    return {
        "kind": "codes",
        "step": step,
        "learned": learned,
        "tested": tested,
        "correct": correct,
        "total": 10,
        "squared_errors": squared_errors,
        "reconstruction_error": error,
    }


# In task 0 items move, in task 1 they do not; two steps per task, and a third task comes last.
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
    found = code_probes(ROWS)
    assert [*found] == [0, 1, 2]
    assert found[0].step.tolist() == [0, 1, 2, 4, 6]
    assert found[0].learned.tolist() == [-1, 0, 0, 1, 2]
    assert found[0].accuracy.tolist() == pytest.approx([0.1, 0.7, 0.9, 0.5, 0.4])
    assert found[0].position_error.tolist() == pytest.approx([0.3, 0.03, 0.02, 0.04, 0.06])
    assert found[0].error.tolist() == pytest.approx([90, 50, 40, 60, 70])
    assert np.isnan(found[1].position_error).all()


def test_the_later_of_two_rows_for_one_moment_counts_in_any_order() -> None:
    rows = [row(6, 2, 0, 1), *ROWS[::-1], row(2, 0, 0, 3)]
    assert code_probes(rows)[0].accuracy.tolist() == pytest.approx([0.1, 0.7, 0.3, 0.5, 0.4])


def test_the_best_values_are_averaged_over_environments() -> None:
    found = code_probes(ROWS)
    assert max_accuracy(found) == pytest.approx((0.9 + 0.8 + 1.0) / 3)
    assert min_position_error(found) == pytest.approx((0.02 + 0.01) / 2)


def test_changes_go_from_the_end_of_the_environments_stage_to_the_end() -> None:
    found = code_probes(ROWS)
    assert accuracy_change(found) == pytest.approx((-0.5 + 0.2) / 2)
    assert accuracy_change(found, include_last=True) == pytest.approx((-0.5 + 0.2 + 0) / 3)
    assert position_error_change(found) == pytest.approx(0.04)
    assert position_error_change(found, include_last=True) == pytest.approx(0.04 / 2)


def test_the_lowest_change_ignores_recovery() -> None:
    assert lowest_accuracy_change(code_probes(ROWS)) == pytest.approx((-0.5 + 0.2) / 2)
    back = [*ROWS, row(8, 3, 0, 8), row(8, 3, 1, 1), row(8, 3, 2, 10)]
    assert accuracy_change(code_probes(back)) == pytest.approx((-0.1 - 0.5 + 0) / 3)
    assert lowest_accuracy_change(code_probes(back)) == pytest.approx((-0.5 - 0.5 + 0) / 3)


def test_environments_not_yet_learned_count_for_the_best_but_have_not_changed() -> None:
    found = code_probes([*ROWS, row(2, 0, 3, 5), row(6, 2, 3, 4)])
    assert max_accuracy(found) == pytest.approx((0.9 + 0.8 + 1.0 + 0.5) / 4)
    assert accuracy_change(found, include_last=True) == pytest.approx((-0.5 + 0.2 + 0) / 3)


def test_any_value_can_be_read_at_the_end_of_a_stage_and_of_the_run() -> None:
    both = ends(code_probes([*ROWS, row(6, 2, 3, 4)]), lambda probe: probe.error)
    assert both.environment.tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(both.stage, [40, 30, 10, np.nan])
    np.testing.assert_allclose(both.final, [70, 20, 10, np.nan])


def test_what_was_not_measured_is_refused() -> None:
    metrics = (max_accuracy, min_position_error, accuracy_change, position_error_change)
    for metric in (*metrics, lowest_accuracy_change):
        with pytest.raises(NotMeasuredError):
            metric(code_probes([]))
    with pytest.raises(NotMeasuredError, match="at the end of an earlier stage"):
        accuracy_change(code_probes(ROWS[:3]))
    with pytest.raises(NotMeasuredError, match="position"):
        min_position_error(code_probes([ROWS[4]]))


def described(learned: int, tested: int, used: Any, mask: Any) -> dict[str, Any]:
    when = {"kind": "latents", "step": learned, "learned": learned, "tested": tested}
    return {**when, "used": used, "mask": mask}


def test_active_latents_are_used_and_not_masked_in_the_last_description() -> None:
    rows = [
        described(1, 0, [1, 1, 1, 1, 1], [1, 1, 1, 1, 1]),
        described(1, 3, [1, 1, 1, 1, 1], [1, 1, 1, 1, 1]),
        described(2, 2, [0, 0, 0, 0, 1], [1, 1, 1, 1, 0]),
        described(2, 1, [1, 1, 1, 0, 0], [0, 1, 1, 1, 1]),
        described(2, 0, [1, 1, 0, 0, 0], [1, 1, 1, 1, 1]),
    ]
    found = active_latents(rows)
    assert found.tested.tolist() == [0, 1, 2]
    assert found.active.astype(int).tolist() == [[1, 1, 0, 0, 0], [0, 1, 1, 0, 0], [0] * 5]
    assert found.used == 3
    third = 1 / 3
    expected = [[1, third, 0], [third, 1, 0], [0, 0, np.nan]]
    np.testing.assert_allclose(found.overlap, expected)
    with pytest.raises(NotMeasuredError, match="latents that are used"):
        active_latents([described(0, 0, None, None)])


def reported(*opened: float | None, ends: tuple[int, ...] = (10, 20, 30)) -> list[dict[str, Any]]:
    steps = {f"opened_{number}": step for number, step in enumerate(opened, 1)}
    count = 1 + sum(step is not None for step in opened)
    early = [
        {"kind": "task", "learned": task, "step": step, "diagnostics": {"environments": 1.0}}
        for task, step in enumerate(ends[:-1])
    ]
    last = {"environments": float(count), "active": 0.0, **steps}
    return [
        *early,
        {"kind": "task", "learned": len(ends) - 1, "step": ends[-1], "diagnostics": last},
    ]


def test_environments_opened_in_their_stages_are_exact() -> None:
    found = inferred_environments(reported(11.0, 25.0, None))
    assert (found.opened, found.true, found.missed, found.false) == (3, 3, 0, 0)
    assert found.delays.tolist() == [1, 5]
    assert found.exact


def test_environments_opened_elsewhere_are_false_and_others_are_missed() -> None:
    found = inferred_environments(reported(7.0, 10.0, 12.0, 15.0))
    assert (found.opened, found.true, found.missed, found.false) == (5, 3, 1, 3)
    np.testing.assert_allclose(found.delays, [2, np.nan])
    assert not found.exact
    # As many as there were, but in the wrong places.
    assert not inferred_environments(reported(12.0, 15.0)).exact
    late = inferred_environments(reported(20.0, 21.0))
    assert (late.delays.tolist(), late.exact) == ([10, 1], True)


def test_a_recurring_environment_is_not_opened_again() -> None:
    known = inferred_environments(reported(11.0), labels=[0, 1, 0])
    assert (known.true, known.exact, known.delays.tolist()) == (2, True, [1])
    twice = inferred_environments(reported(11.0, 22.0), labels=[0, 1, 0])
    assert (twice.exact, twice.false) == (False, 1)
    with pytest.raises(ValueError, match="environments of 3 tasks, found 2"):
        inferred_environments(reported(), labels=[0, 1])


def test_learners_that_report_no_environments_are_not_measured() -> None:
    for rows in ([], [{"kind": "task", "learned": 0, "step": 1}]):
        with pytest.raises(NotMeasuredError, match="has the diagnostic 'environments'"):
            inferred_environments(rows)
