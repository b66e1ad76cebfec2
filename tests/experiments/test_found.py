"""What lies on disk is found: runs of trials, those that are missing, and rows of measurements."""

from __future__ import annotations

from typing import Any

import pytest

from everlearn.experiments.found import Found, at_scale, runs_of, thin
from everlearn.experiments.trial import PAPER, SMALL, Settings, Trial

A = Trial("a", "er", label="Replay")
B = Trial("b", "dcl", seeds=(0, 1))


def exam(learned: int, tested: int = 0, right: int = 5) -> dict[str, Any]:
    return {
        "kind": "test", "step": learned, "learned": learned, "tested": tested, "right": right,
        "total": 10,
    }  # fmt: skip


@pytest.fixture
def found(tmp_path) -> Found:
    return Found(tmp_path, PAPER)


def test_every_scale_but_paper_is_set_as_small_is():
    every = {SMALL: Settings(numbers={"n": 1}), PAPER: Settings(numbers={"n": 2})}
    assert [at_scale(every, scale).numbers["n"] for scale in ("tiny", "small", "paper")] == [
        1,
        1,
        2,
    ]


def test_groups_come_in_the_order_of_trials_under_their_titles(found, keep):
    keep(A, [exam(0)])
    keep(B, [exam(0)], seed=1)
    keep(B, [exam(0)], seed=0)
    groups = found.groups([B, A])
    assert [(group.label, group.method, group.seeds) for group in groups] == [
        ("b", "dcl", [0, 1]),
        ("Replay", "er", [0]),
    ]
    assert [run.label for run in runs_of(groups)] == ["b", "b", "Replay"]


def test_a_seed_that_is_not_asked_for_is_left_out(found, keep):
    for seed in (0, 1):
        keep(B, [exam(0)], seed=seed)
    (group,) = found.groups([B._replace(seeds=(1,))])
    assert group.seeds == [1]


def test_a_trial_with_two_labels_is_shown_under_the_one_asked_for(found, keep):
    keep(A, [exam(0)])
    assert found.groups([A])[0].label == "Replay"
    (group,) = found.groups([A._replace(label="ER")])
    assert (group.label, group.runs[0].label) == ("ER", "ER")


def test_runs_that_are_not_there_or_not_finished_are_missing(found, keep):
    keep(A, [exam(0)], finish=False)
    keep(B, [exam(0)], seed=1)
    assert found.missing([A, B]) == ["a-seed0", "b-seed0"]
    assert [group.seeds for group in found.groups([A, B])] == [[1]]


def test_a_finished_run_that_tested_nothing_makes_no_group(found, keep):
    keep(A, [])
    assert found.missing([A]) == []
    assert found.groups([A]) == []


def test_a_measurement_is_its_rows_without_the_origin(found, keep_part):
    keep_part("sum", [{"kind": "count", "n": 1}, {"kind": "count", "n": 2}])
    assert [row["n"] for row in found.rows("sum")] == [1, 2]
    assert found.rows("other") == []
    origins = found.origins("sum", "other")
    assert list(origins) == ["sum"]
    assert origins["sum"]["command"] == "everlearn reproduce"


def test_measurements_are_found_by_how_they_begin(found, keep_part):
    for part in ("sum-b", "sum-a", "product"):
        keep_part(part, [])
    assert found.parts("sum-") == ["sum-a", "sum-b"]
    assert found.parts("none-") == []


def test_a_row_that_does_not_say_its_kind_is_refused(found, keep_part):
    path = keep_part("sum", [{"n": 1}])
    for read in (found.rows, found.origins):
        with pytest.raises(ValueError, match=r"sum\.jsonl has a row that does not say its kind"):
            read("sum")
    path.write_text('{"kind": 1}\n')
    with pytest.raises(ValueError, match="kind"):
        found.rows("sum")


def test_a_run_of_another_method_is_refused(found, keep):
    folder = keep(A._replace(method="dcl"), [exam(0)])
    with pytest.raises(ValueError, match="is a run of dcl, and is named as one of er") as raised:
        found.groups([A])
    assert str(folder) in str(raised.value)


def test_tests_between_those_asked_for_are_left_out(found, keep):
    probe = {"kind": "probe", "step": 1, "learned": 0, "tested": 0, "right": 1, "total": 10}
    rows = [exam(-1), *(exam(learned, right=learned) for learned in range(6)), probe]
    keep(A._replace(plan={"every": 4}), rows)
    (group,) = found.groups([A._replace(plan={"every": 4})])
    (run,) = group.runs
    tests = [row["learned"] for row in run.rows if row["kind"] == "test"]
    assert tests == [-1, 3, 5]  # before any, after 4 tasks, and the last
    assert [row["kind"] for row in run.rows][-1] == "probe"
    # the last accuracy stays, 5 of 10; the mean over the stream is that of 3 and 5 of 10
    assert run.summary["average_accuracy"] == pytest.approx(0.5)
    assert run.summary["stream_average"] == pytest.approx(0.4)


def test_a_run_that_was_tested_as_asked_stays_as_it_is(found, keep):
    keep(A, [exam(0), exam(1)])
    (run,) = found.groups([A])[0].runs
    assert thin(run, 1) is run
    assert thin(run._replace(rows=[]), 5).rows == []
