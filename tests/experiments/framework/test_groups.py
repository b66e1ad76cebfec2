"""Numbers and figures of groups, from hand-written runs."""

from __future__ import annotations

from typing import Any

import pytest

from everlearn.experiments.framework.groups import (
    accuracy_after,
    accuracy_figures,
    bar_figures,
    final_accuracy,
    final_pooled_accuracy,
    format_mean_std,
    format_number,
    summary_cell,
    wilson_line,
)
from everlearn.experiments.framework.results_folder import ResultsFolder
from everlearn.experiments.framework.trial import PAPER, Trial
from everlearn.report import Group

pytestmark = pytest.mark.integration

pytest.importorskip("matplotlib")

# right answers of 10 by (learned, tested), of two seeds: the second was not tested after one task
SEEDS = [{(0, 0): 8, (1, 0): 4, (1, 1): 8}, {(1, 0): 2, (1, 1): 10}]
TRIAL = Trial("a", "er", seeds=(0, 1))


def result_row(learned: int, tested: int, right: int, total: int = 10) -> dict[str, Any]:
    return {
        "kind": "test", "step": learned, "learned": learned, "tested": tested, "correct": right,
        "total": total,
    }  # fmt: skip


@pytest.fixture
def group(write_run, tmp_path) -> Group:
    for seed, counts in enumerate(SEEDS):
        write_run(TRIAL, [result_row(*pair, right) for pair, right in counts.items()], seed)
    return ResultsFolder(tmp_path, PAPER).groups([TRIAL])[0]


def test_accuracy_after_some_tasks_is_the_mean_over_tasks_and_seeds(group):
    assert accuracy_after(group, 2) == pytest.approx(((0.4 + 0.8) / 2 + (0.2 + 1.0) / 2) / 2)


def test_seeds_not_tested_at_that_point_do_not_count(group):
    assert accuracy_after(group, 1) == pytest.approx(0.8)
    assert accuracy_after(group, 3) is None
    assert accuracy_after(group, 0) is None


def test_final_accuracy_is_the_mean_over_seeds(group):
    assert final_accuracy(group) == pytest.approx(0.6)


def test_pooled_accuracy_weights_images_equally(write_run, tmp_path):
    # at the end 5 of 10 and 20 of 40 images, then 10 of 10 and none of 40
    for seed, (few, many) in enumerate([(5, 20), (10, 0)]):
        write_run(
            TRIAL, [result_row(0, 0, 1), result_row(1, 0, few), result_row(1, 1, many, 40)], seed
        )
    (group,) = ResultsFolder(tmp_path, PAPER).groups([TRIAL])
    assert final_pooled_accuracy(group) == pytest.approx((25 / 50 + 10 / 50) / 2)


def test_summary_cell_shows_a_number_or_a_dash(group):
    assert summary_cell(group, "average_accuracy") == "0.600"
    assert summary_cell(group, "average_accuracy", 1) == "0.6"
    assert summary_cell(group, "stability_gap") == "–"


def test_numbers_are_formatted_as_in_reports():
    assert [format_number(value) for value in (-0.0001, -0.25, None)] == ["0.000", "−0.250", "–"]
    assert format_mean_std([-1.0, -3.0], 1) == "−2.0 ± 1.4"


def test_bars_leave_out_groups_without_the_number(group):
    (figure,) = bar_figures([group], "forgetting", "name", "forgetting", "Words.")
    assert figure.caption == "Words."
    assert "0.4" in figure.svg
    assert bar_figures([group], "stability_gap", "name", "gap", "Words.") == []


def test_the_mean_of_a_group_is_over_the_seeds_that_have_the_number(group):
    assert group.mean("average_accuracy") == pytest.approx(0.6)
    assert group.mean("forgetting") == pytest.approx(0.8 - 0.4)  # of the first seed alone
    assert group.mean("stability_gap") is None


def test_wilson_line_has_fractions_and_intervals():
    line = wilson_line("l", "m", [2, 5], [(5, 10), (0, 10)])
    assert line.x.tolist() == [2, 5]
    assert line.mean.tolist() == [0.5, 0.0]
    # z = 1.96: (p + z²/2n ± z sqrt(p(1 - p)/n + z²/4n²)) / (1 + z²/n)
    assert line.low.tolist() == pytest.approx([0.2366, 0.0], abs=1e-4)
    assert line.high.tolist() == pytest.approx([0.7634, 0.2775], abs=1e-4)


def test_accuracy_figure_is_drawn_only_where_there_are_runs(group):
    (figure,) = accuracy_figures([group], "name", "Words.")
    assert figure.caption == "Words."
    assert "<svg" in figure.svg
    assert accuracy_figures([], "name", "Words.") == []
