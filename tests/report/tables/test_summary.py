"""The summary table matches hand calculations."""

from __future__ import annotations

import pytest

from everlearn.report import group_runs, summary_table
from everlearn.report.tables.numbers import MISSING
from everlearn.runs.load import load_runs

CLASS = {"name": "class"}


@pytest.fixture
def summary(tmp_path):
    def make() -> tuple[list[str], dict[str, list[str]]]:
        table = summary_table(group_runs(load_runs(tmp_path)))
        return table.head, {row[0]: row for row in table.rows}

    return make


def _cells(found, method: str, start: str = "after") -> dict[str, str]:
    head, rows = found
    return {
        title: cell
        for title, cell in zip(head, rows[method], strict=True)
        if title.startswith(start)
    }


def _every(tasks: int, step: int) -> list[list[int]]:
    """After task t all tasks so far score 10 of 10, one fewer for each hundred tasks."""
    return [[10 - (t + 1) // 100] * (t + 1) if (t + 1) % step == 0 else [] for t in range(tasks)]


def test_a_short_stream_has_early_milestones(write_run, summary):
    write_run("a", matrix=[[9], [7, 8], [6, 7, 10], [1] * 4, [2] * 5], tasks=5)
    assert _cells(summary(), "dcl") == {
        "after 1 task": "0.900",
        "after 2 tasks": "0.750",
        "after 5 tasks": "0.200",
    }


def test_streams_of_different_lengths_share_the_table(write_run, summary):
    write_run("a", matrix=_every(500, 10), tasks=500, scenario=CLASS)
    write_run("b", "er", matrix=_every(100, 50), tasks=100, scenario=CLASS)
    found = summary()
    assert _cells(found, "dcl") == {
        "after 10 tasks": "1.000",
        "after 50 tasks": "1.000",
        "after 100 tasks": "0.900",
        "after 200 tasks": "0.800",
        "after 500 tasks": "0.500",
    }
    assert list(_cells(found, "er").values()) == [MISSING, "1.000", "0.900", MISSING, MISSING]
    assert list(_cells(found, "er", "average").values()) == ["0.900"]


def test_milestones_average_the_seeds_that_reached_them(write_run, summary):
    write_run("a", seed=0, matrix=[[4], [4, 6]])
    write_run("b", seed=1, matrix=[[8], []])
    assert _cells(summary(), "dcl") == {"after 1 task": "0.600", "after 2 tasks": "0.500"}


def test_columns_that_no_method_measured_are_left_out(write_run, summary):
    write_run("a")
    assert _cells(summary(), "dcl", "stability") == {}


def test_unmeasured_numbers_are_shown_as_missing(write_run, summary):
    write_run("a", matrix=[[9]])  # forgetting needs two tasks
    write_run("b", "er")
    assert _cells(summary(), "dcl", "forgetting") == {"forgetting": MISSING}


def test_the_summary_has_the_stability_gap(write_run, summary):
    probe = {"kind": "probe", "tested": 0, "total": 10}
    more = [
        {**probe, "step": step, "learned": learned, "correct": correct}
        for step, learned, correct in [(5, 0, 9), (7, 1, 3), (10, 1, 8), (12, 2, 7)]
    ]
    write_run("a", more=more)
    # 0.9 to 0.3 at the first switch, 0.8 to 0.7 at the second
    assert _cells(summary(), "dcl", "stability") == {"stability gap": "+0.350"}


def _note(tmp_path) -> str:
    return summary_table(group_runs(load_runs(tmp_path))).note


def test_methods_that_did_not_learn_their_tasks_are_named(write_run, tmp_path):
    write_run("a")  # 0.9, as in its matrix: 9, 8 and 10 of 10
    write_run("b", "bir", matrix=[[9], [7, 8], [6, 7, 9]])
    assert "Did not learn their tasks (learning accuracy below 0.9): bir." in _note(tmp_path)


def test_a_blank_has_its_reason(write_run, tmp_path):
    write_run("a")
    write_run("b", "er", matrix=[[], [], [6, 7, 9]])
    note = _note(tmp_path)
    assert "No forgetting of er: 2 of 3 tasks were not tested right after they were learned" in note
    assert "forward transfer" not in note  # no method has any


def test_validation_images_are_named_and_not_mixed_with_test_images(write_run, tmp_path):
    row = {"kind": "test", "step": 15, "learned": 2, "total": 10, "correct": 5, "split": "val"}
    write_run("a", matrix=[], more=[{**row, "tested": tested} for tested in range(3)])
    assert "All numbers are of validation images" in _note(tmp_path)
    write_run("b", "er")
    with pytest.raises(ValueError, match=r"evaluated on the same images: .*a on val, .*b on test"):
        load_runs(tmp_path)
