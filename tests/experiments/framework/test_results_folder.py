"""ResultsFolder finds runs of trials, missing runs, and rows of measurements."""

from __future__ import annotations

from typing import Any

import pytest

from everlearn.core.jsonl import pack_json_lines
from everlearn.experiments.framework.results_folder import (
    ResultsFolder,
    at_scale,
    runs_of,
    subsample_tests,
)
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings, Trial
from everlearn.report.tables.paired_differences import paired_differences

pytestmark = pytest.mark.integration

A = Trial("a", "er", label="Replay")
B = Trial("b", "dcl", seeds=(0, 1))


def result_row(learned: int, tested: int = 0, right: int = 5) -> dict[str, Any]:
    return {
        "kind": "test", "step": learned, "learned": learned, "tested": tested, "correct": right,
        "total": 10,
    }  # fmt: skip


@pytest.fixture
def found(tmp_path) -> ResultsFolder:
    return ResultsFolder(tmp_path, PAPER)


def test_every_scale_but_paper_uses_the_settings_of_small():
    every = {SMALL: Settings(options={"n": 1}), PAPER: Settings(options={"n": 2})}
    assert [at_scale(every, scale).options["n"] for scale in ("tiny", "small", "paper")] == [
        1,
        1,
        2,
    ]


def test_groups_come_in_the_order_of_trials_under_their_titles(found, write_run):
    write_run(A, [result_row(0)])
    write_run(B, [result_row(0)], seed=1)
    write_run(B, [result_row(0)], seed=0)
    groups = found.groups([B, A])
    assert [(group.label, group.method, group.seeds) for group in groups] == [
        ("b", "dcl", [0, 1]),
        ("Replay", "er", [0]),
    ]
    assert [run.label for run in runs_of(groups)] == ["b", "b", "Replay"]


def test_seeds_not_requested_are_left_out(found, write_run):
    for seed in (0, 1):
        write_run(B, [result_row(0)], seed=seed)
    (group,) = found.groups([B._replace(seeds=(1,))])
    assert group.seeds == [1]


def test_groups_use_the_label_of_the_requested_trial(found, write_run):
    write_run(A, [result_row(0)])
    assert found.groups([A])[0].label == "Replay"
    (group,) = found.groups([A._replace(label="ER")])
    assert (group.label, group.runs[0].label) == ("ER", "ER")


def test_absent_and_unfinished_runs_are_missing(found, write_run):
    write_run(A, [result_row(0)], finish=False)
    write_run(B, [result_row(0)], seed=1)
    assert found.missing([A, B]) == ["a-seed0", "b-seed0"]
    assert [group.seeds for group in found.groups([A, B])] == [[1]]


def test_a_finished_run_without_tests_makes_no_group(found, write_run):
    write_run(A, [])
    assert found.missing([A]) == []
    assert found.groups([A]) == []


def test_a_run_cut_after_some_tasks_has_their_costs_and_no_sizes(found, write_run):
    def spent(learned: int) -> dict[str, Any]:
        return {
            "kind": "task", "learned": learned, "step": learned, "images": 100, "seconds": 2.0,
            "evaluation_seconds": 0.25, "loss": 0.1, "peak_memory": 2, "bytes": {"net": 8},
            "parameters": 1,
        }  # fmt: skip

    write_run(A, [result_row(0), spent(0), result_row(1), result_row(1, tested=1), spent(1)])
    ((whole,), (cut,)) = (found.groups([A])[0].runs, found.groups([A], 1)[0].runs)
    assert (whole.summary["tasks"], cut.summary["tasks"]) == (2, 1)
    assert (whole.summary["seconds"], cut.summary["seconds"]) == (4.0, 2.0)
    sizes = ("bytes", "parameters", "peak_memory")
    assert [whole.summary[name] for name in sizes] == [8, 1, 2]
    assert [cut.summary[name] for name in sizes] == [None, None, None]


def test_a_longer_run_that_was_not_tested_by_then_does_not_count(found, write_run):
    write_run(B, [result_row(199)], seed=1)
    write_run(B, [result_row(499)], seed=0)  # joint training is tested at its end alone
    (group,) = found.groups([B], 200)
    assert group.seeds == [1]


def test_a_run_that_was_not_tested_right_then_does_not_count(found, write_run):
    write_run(B, [result_row(59), result_row(89)], seed=0)  # as if after 60 tasks, not 80
    write_run(B, [result_row(79)], seed=1)
    (group,) = found.groups([B], 80)
    assert group.seeds == [1]


def test_a_run_of_fewer_tasks_does_not_count(found, write_run):
    write_run(B, [result_row(99)], seed=0)
    write_run(B, [result_row(99), result_row(199)], seed=1)
    (group,) = found.groups([B], 200)
    assert group.seeds == [1]


def test_smaller_scales_compare_runs_after_as_many_tasks_as_their_longest(write_run, tmp_path):
    write_run(A, [result_row(2), result_row(4)], tasks=5)
    write_run(B, [result_row(2)], tasks=3)
    small = ResultsFolder(tmp_path, SMALL)
    assert [group.label for group in small.groups([A, B], 200)] == ["Replay"]
    assert [group.label for group in small.groups([A, B], 3)] == ["Replay", "b"]


def test_cut_runs_of_other_lengths_are_compared_in_pairs(found, write_run):
    three = A._replace(seeds=(0, 1, 2))
    for seed in three.seeds:
        rows = [result_row(1, right=5 + seed), result_row(3, right=2)]
        write_run(three, rows, seed, tasks=4)
        write_run(B, [result_row(1, right=8)], seed, tasks=2)
    groups = found.groups([three, B._replace(seeds=three.seeds)], 2)
    (row,) = paired_differences(groups).rows
    assert row[:3] == ["Replay − b", "3", "−0.200"]


def test_rows_of_a_measurement_exclude_its_origin(found, write_measurement):
    write_measurement("sum", [{"kind": "count", "n": 1}, {"kind": "count", "n": 2}])
    assert [row["n"] for row in found.rows("sum")] == [1, 2]
    assert found.rows("other") == []
    origins = found.origins("sum", "other")
    assert list(origins) == ["sum"]
    assert origins["sum"]["command"] == "everlearn reproduce"


def test_measurements_are_found_by_prefix_packed_or_not(found, write_measurement, tmp_path):
    for part in ("sum-b", "sum-a", "product"):
        write_measurement(part, [])
    pack_json_lines(tmp_path / "parts" / "sum-b.jsonl")
    assert found.measurements("sum-") == ["sum-a", "sum-b"]
    assert found.measurements("none-") == []


def test_a_row_without_a_kind_is_refused(found, write_measurement):
    path = write_measurement("sum", [{"n": 1}])
    for read in (found.rows, found.origins):
        with pytest.raises(ValueError, match=r"sum\.jsonl has a row without a kind"):
            read("sum")
    path.write_text('{"kind": 1}\n')
    with pytest.raises(ValueError, match="kind"):
        found.rows("sum")


def test_a_run_of_another_method_is_refused(found, write_run):
    folder = write_run(A._replace(method="dcl"), [result_row(0)])
    with pytest.raises(
        ValueError, match="holds a run of dcl, but its name belongs to er"
    ) as raised:
        found.groups([A])
    assert str(folder) in str(raised.value)


def test_tests_between_the_requested_ones_are_left_out(found, write_run):
    probe = {"kind": "probe", "step": 1, "learned": 0, "tested": 0, "correct": 1, "total": 10}
    rows = [result_row(-1), *(result_row(learned, right=learned) for learned in range(6)), probe]
    write_run(A._replace(plan={"every": 4}), rows)
    (group,) = found.groups([A._replace(plan={"every": 4})])
    (run,) = group.runs
    tests = [row["learned"] for row in run.rows if row["kind"] == "test"]
    assert tests == [-1, 3, 5]  # before any, after 4 tasks, and the last
    assert [row["kind"] for row in run.rows][-1] == "probe"
    # the last accuracy stays, 5 of 10; the mean over the stream is that of 3 and 5 of 10
    assert run.summary["average_accuracy"] == pytest.approx(0.5)
    assert run.summary["stream_average"] == pytest.approx(0.4)


def test_tests_between_two_trainings_are_left_out(write_run, tmp_path):
    trial = Trial("c", "cumulative", {"retrain_every": 3})
    write_run(trial, [result_row(learned) for learned in range(14)])
    for every, kept in ((1, [2, 5, 8, 11, 13]), (2, [5, 11, 13])):
        (run,) = (
            ResultsFolder(tmp_path, PAPER).groups([trial._replace(plan={"every": every})])[0].runs
        )
        assert [row["learned"] for row in run.rows] == kept


def test_a_run_tested_as_requested_is_unchanged(found, write_run):
    write_run(A, [result_row(0), result_row(1)])
    (run,) = found.groups([A])[0].runs
    assert subsample_tests(run, 1) is run
    assert subsample_tests(run._replace(rows=[]), 5).rows == []
