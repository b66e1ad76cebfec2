"""Lines of figures: means over seeds, and their intervals."""

from __future__ import annotations

import numpy as np
import pytest

from everlearn.metrics import aggregate, wilson
from everlearn.report import group_runs
from everlearn.report.charts.accuracy_lines import Line, accuracy_lines, probe_lines
from everlearn.report.charts.line_labels import LineLabels, separate
from everlearn.report.charts.style import TEXT
from everlearn.report.tables.intervals import interval_over_images, interval_over_seeds
from everlearn.runs.load import load_runs


def _probe(step: int, correct: int, learned: int = 0, tested: int = 0) -> dict[str, object]:
    return {
        "kind": "probe", "step": step, "learned": learned, "tested": tested, "correct": correct,
        "total": 10,
    }  # fmt: skip


def test_the_interval_over_seeds_matches_the_metrics():
    values = np.random.default_rng(0).random((5, 7))
    found = interval_over_seeds(values)
    for column, mean, low, high in zip(values.T, *found, strict=True):
        spread = aggregate(column.tolist())
        assert (mean, low, high) == pytest.approx((spread.mean, spread.low, spread.high))


@pytest.mark.parametrize("mean", [0.01, 0.99])
def test_the_interval_contains_the_mean_of_tasks_of_unequal_size(mean):
    interval = interval_over_images(np.array([mean]), np.array([50]), np.array([100]))
    assert interval.low[0] <= mean <= interval.high[0]


def test_labels_at_the_top_of_the_plot_stay_inside_the_figure():
    end = np.array([1.0])
    lines = [Line(label, label, np.array([5]), end, end, end) for label in ("one", "two")]
    labels = LineLabels(lines, height=300)
    assert labels.positions is not None
    assert max(labels.positions) > 300
    assert max(labels.positions) + TEXT / 2 <= labels.height + labels.top_margin


def test_labels_are_not_pushed_below_the_axis_where_tick_labels_stand():
    moved = separate([7, 20], 15, floor=7)
    assert moved == pytest.approx([7, 22])
    end = np.array([0.0])
    lines = [Line(label, label, np.array([5]), end, end, end) for label in ("one", "two")]
    assert LineLabels(lines, height=300).positions is None  # a legend instead


def test_a_line_of_one_seed_matches_a_hand_calculation(write_run):
    (line,) = accuracy_lines(group_runs(load_runs(write_run("a"))))
    assert line.x.tolist() == [1, 2, 3]
    assert line.mean == pytest.approx([0.9, 0.75, 23 / 30])
    low, high = wilson([9, 15, 23], [10, 20, 30])
    assert line.low == pytest.approx(low)
    assert line.high == pytest.approx(high)


def test_a_line_has_the_points_that_all_seeds_share(write_run, tmp_path):
    write_run("a", seed=0, matrix=[[9], [7, 8]], finish=True)
    write_run("b", seed=1, matrix=[[5], [], [6, 6, 6]])
    (line,) = accuracy_lines(group_runs(load_runs(tmp_path)))
    assert line.x.tolist() == [1]
    assert (line.mean[0], line.low[0], line.high[0]) == pytest.approx((0.7, 0.5, 0.9))


def test_seeds_without_a_shared_point_are_refused(write_run, tmp_path):
    write_run("a", seed=0, matrix=[[9]])
    write_run("b", seed=1, matrix=[[], [6, 6]])
    with pytest.raises(ValueError, match="seeds of dcl have no test at the same time"):
        accuracy_lines(group_runs(load_runs(tmp_path)))


def test_probe_lines_show_task_1_keyed_by_task_ends(write_run, tmp_path):
    rows = [_probe(0, 1, -1), _probe(5, 9), _probe(10, 4, 1), _probe(10, 7, 1, tested=1)]
    write_run("a", more=rows)
    write_run("b", "joint", more=rows[:2])
    write_run("c", "ewc")
    panels = probe_lines(group_runs(load_runs(tmp_path)))
    ((ends, lines),) = panels.items()
    assert ends == (5, 10, 15)
    found = {line.label: (line.x.tolist(), line.mean.tolist()) for line in lines}
    assert found == {"dcl": ([0, 5, 10], [0.1, 0.9, 0.4]), "joint": ([0, 5], [0.1, 0.9])}


def test_the_later_of_two_probes_at_one_step_counts(write_run):
    folder = write_run("a", more=[_probe(5, 9, 0), _probe(5, 4, 1)])
    ((line,),) = probe_lines(group_runs(load_runs(folder))).values()
    assert (line.x.tolist(), line.mean.tolist()) == ([5], [0.4])


def test_labels_are_separated_and_keep_their_order():
    moved = separate([50, 10, 55], 10)
    assert moved == pytest.approx([47.5, 10, 57.5])


def test_crowded_labels_fall_back_to_a_legend():
    assert separate([10, 10, 10, 10], 10) is None
