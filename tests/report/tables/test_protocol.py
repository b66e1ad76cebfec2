"""The main table of the protocol from hand-written runs."""

from __future__ import annotations

import pytest

from everlearn.methods import METHODS
from everlearn.report import (
    group_runs,
    protocol_table,
    unlearned_table,
)
from everlearn.report.tables.protocol import format_over_seeds, format_seeds, supervision_words
from everlearn.runs.load import load_runs

SUPERVISION = {name: method.supervision for name, method in METHODS.items()}
GOOD = [[10], [8, 10]]  # correct of 10 on each task so far; both were learned
POOR = [[5], [5, 5]]


@pytest.fixture
def groups(tmp_path):
    return lambda: group_runs(load_runs(tmp_path))


def cells(table, label: str) -> dict[str, str]:
    (row,) = (row for row in table.rows if row[0] == label)
    return dict(zip(table.head, row, strict=True))


def test_each_milestone_has_an_interval_over_three_seeds(write_run, groups):
    for seed, correct in enumerate((7, 8, 9)):
        write_run(f"run{seed}", "er", seed, [[10], [correct, 10]])
    found = cells(protocol_table(groups(), SUPERVISION, milestones=(1, 2, 3)), "er")
    assert found["after 1"] == "1.000 (1.000 to 1.000)"
    # 0.85, 0.90, 0.95: Student's quantile 4.3027 * 0.05 / sqrt(3) = 0.1242; no accuracy exceeds 1
    assert found["after 2"] == "0.900 (0.776 to 1.000)"
    assert found["after 3"] == "–"


def test_fewer_seeds_are_counted_instead():
    assert format_seeds([0.5]) == "0.500 (1 seed)"
    assert format_seeds([0.5, 0.7]) == "0.600 (2 seeds)"
    assert format_seeds([]) == "–"


def test_a_number_of_a_group_is_over_the_seeds_that_measured_it(write_run, groups):
    for seed, correct in enumerate((7, 9)):
        write_run(f"run{seed}", "er", seed, [[10], [correct, 10]])
    write_run("run2", "er", 2, [])  # no test
    (group,) = groups()
    assert format_over_seeds(group, "average_accuracy") == "0.900 (2 seeds)"  # 0.85 and 0.95
    assert format_over_seeds(group, "stability_gap") == "–"
    assert group.listed_seeds == "0, 1, 2"


def test_learning_forgetting_gap_cost_and_supervision_are_shown(write_run, groups):
    write_run("a", "dcl", matrix=GOOD)
    found = cells(protocol_table(groups(), SUPERVISION, {"dcl": 0.25}, (2,)), "dcl")
    assert found == {
        "method": "dcl",
        "after 2": "0.900 (1 seed)",
        "learning accuracy": "1.000",
        "forgetting": "0.200",
        "forward transfer": "–",
        "stability gap": "+0.250",
        "stored": "1.0 MB",
        "training": "1.0 s",
        "supervision": "labels, boundaries, true maps, exemplars",
    }


def test_methods_that_did_not_learn_stand_in_a_table_of_their_own(write_run, groups):
    write_run("a", "er", matrix=GOOD)
    write_run("b", "si", matrix=POOR)
    main = protocol_table(groups(), SUPERVISION)
    others = unlearned_table(groups(), SUPERVISION, {"si": "its learning rate is too low"})
    assert [row[0] for row in main.rows] == ["er"]
    assert others.rows == [
        [
            "si",
            "0.500 (1 seed)",
            "0.500 (1 seed)",
            "labels, boundaries",
            "its learning rate is too low",
        ]
    ]


def test_a_method_without_learning_accuracy_stays_in_the_main_table(write_run, groups):
    write_run("a", "joint", matrix=[[], [9, 9]])  # trained and tested once, at the end
    assert [row[0] for row in protocol_table(groups(), SUPERVISION).rows] == ["joint"]
    assert unlearned_table(groups(), SUPERVISION).rows == []


@pytest.mark.parametrize(("correct", "learned"), [(9, True), (8, False)])
def test_a_method_trained_after_several_tasks_is_judged_by_the_end(
    write_run, groups, correct, learned
):
    matrix = [[], [correct, correct]]
    write_run("a", "gdumb", matrix=matrix, settings={"retrain_every": 2})
    assert [row[0] for row in protocol_table(groups(), SUPERVISION).rows] == ["gdumb"] * learned
    assert len(unlearned_table(groups(), SUPERVISION).rows) == (not learned)


def test_initial_weights_count_as_pretraining(write_run, groups):
    write_run("a", "ar1-star", matrix=GOOD, settings={"weights": "extractor.npz"})
    (group,) = groups()
    assert supervision_words(group, SUPERVISION) == "labels, boundaries, pre-training"


@pytest.mark.parametrize("name", METHODS)
def test_supervision_of_every_method_is_short(write_run, groups, name):
    write_run("a", name, matrix=GOOD)
    (group,) = groups()
    words = supervision_words(group, SUPERVISION)
    assert all(len(word) <= 12 for word in words.split(", ")) or "codes" in words
