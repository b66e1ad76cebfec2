"""Numbers that figures and verdicts read off runs, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from everlearn.experiments.found import Found
from everlearn.experiments.read import (
    accuracy_at,
    bars,
    cell,
    curves,
    last_accuracy,
    last_pooled,
    mean,
    points,
)
from everlearn.experiments.trial import PAPER, Trial
from everlearn.report import Group

pytest.importorskip("matplotlib")

# right answers of 10 by (learned, tested), of two seeds: the second was not tested after one task
SEEDS = [{(0, 0): 8, (1, 0): 4, (1, 1): 8}, {(1, 0): 2, (1, 1): 10}]
TRIAL = Trial("a", "er", seeds=(0, 1))


def exam(learned: int, tested: int, right: int, total: int = 10) -> dict[str, Any]:
    return {
        "kind": "test", "step": learned, "learned": learned, "tested": tested, "right": right,
        "total": total,
    }  # fmt: skip


@pytest.fixture
def group(keep, tmp_path) -> Group:
    for seed, counts in enumerate(SEEDS):
        keep(TRIAL, [exam(*pair, right) for pair, right in counts.items()], seed)
    return Found(tmp_path, PAPER).groups([TRIAL])[0]


def test_the_accuracy_after_some_tasks_is_the_mean_over_tasks_and_seeds(group):
    assert accuracy_at(group, 2) == pytest.approx(((0.4 + 0.8) / 2 + (0.2 + 1.0) / 2) / 2)


def test_seeds_that_were_not_tested_then_do_not_count(group):
    assert accuracy_at(group, 1) == pytest.approx(0.8)
    assert accuracy_at(group, 3) is None
    assert accuracy_at(group, 0) is None


def test_the_last_accuracy_is_the_mean_over_seeds(group):
    assert last_accuracy(group) == pytest.approx(0.6)


def test_the_pooled_share_counts_images_not_tasks_and_is_the_mean_over_seeds(keep, tmp_path):
    # at the end 5 of 10 and 20 of 40 images, then 10 of 10 and none of 40
    for seed, (few, many) in enumerate([(5, 20), (10, 0)]):
        keep(TRIAL, [exam(0, 0, 1), exam(1, 0, few), exam(1, 1, many, 40)], seed)
    (group,) = Found(tmp_path, PAPER).groups([TRIAL])
    assert last_pooled(group) == pytest.approx((25 / 50 + 10 / 50) / 2)


def test_a_cell_shows_a_number_or_that_there_is_none(group):
    assert cell(group, "average_accuracy") == "0.600"
    assert cell(group, "average_accuracy", 1) == "0.6"
    assert cell(group, "stability_gap") == "–"


def test_bars_are_of_the_groups_that_have_the_number(group):
    (figure,) = bars([group], "forgetting", "name", "forgetting", "Words.")
    assert figure.caption == "Words."
    assert "0.4" in figure.svg
    assert bars([group], "stability_gap", "name", "gap", "Words.") == []


def test_a_number_of_the_summary_is_averaged_over_the_seeds_that_have_it(group):
    assert mean(group, "average_accuracy") == pytest.approx(0.6)
    assert mean(group, "forgetting") == pytest.approx(0.8 - 0.4)  # of the first seed alone
    assert mean(group, "stability_gap") is None


def test_points_are_shares_with_wilson_intervals():
    line = points("l", "m", [2, 5], [(5, 10), (0, 10)])
    assert line.x.tolist() == [2, 5]
    assert line.mean.tolist() == [0.5, 0.0]
    # z = 1.96: (p + z²/2n ± z sqrt(p(1 - p)/n + z²/4n²)) / (1 + z²/n)
    assert line.low.tolist() == pytest.approx([0.2366, 0.0], abs=1e-4)
    assert line.high.tolist() == pytest.approx([0.7634, 0.2775], abs=1e-4)


def test_there_is_a_drawing_where_there_are_runs_only(group):
    (figure,) = curves([group], "name", "Words.")
    assert figure.caption == "Words."
    assert "<svg" in figure.svg
    assert curves([], "name", "Words.") == []
