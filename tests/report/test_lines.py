"""Lines of figures: means over seeds, and how sure they are."""

from __future__ import annotations

import numpy as np
import pytest

from everlearn.metrics import aggregate, wilson
from everlearn.report import group_runs, load_runs
from everlearn.report.ends import Ends, spread
from everlearn.report.lines import Line, accuracy_lines, probe_lines
from everlearn.report.spread import over_images, over_seeds
from everlearn.report.style import TEXT


def _probe(step: int, right: int, learned: int = 0, tested: int = 0) -> dict[str, object]:
    return {
        "kind": "probe", "step": step, "learned": learned, "tested": tested, "right": right,
        "total": 10,
    }  # fmt: skip


def test_students_interval_is_that_of_the_metrics():
    values = np.random.default_rng(0).random((5, 7))
    found = over_seeds(values)
    for column, mean, low, high in zip(values.T, *found, strict=True):
        spread = aggregate(column.tolist())
        assert (mean, low, high) == pytest.approx((spread.mean, spread.low, spread.high))


@pytest.mark.parametrize("mean", [0.01, 0.99])
def test_an_interval_holds_a_mean_of_unequal_tasks(mean):
    span = over_images(np.array([mean]), np.array([50]), np.array([100]))
    assert span.low[0] <= mean <= span.high[0]


def test_labels_of_lines_that_end_together_at_the_top_stay_in_the_picture():
    end = np.array([1.0])
    lines = [Line(label, label, np.array([5]), end, end, end) for label in ("one", "two")]
    ends = Ends(lines, height=300)
    assert ends.places is not None
    assert max(ends.places) > 300
    assert max(ends.places) + TEXT / 2 <= ends.height + ends.above


def test_one_seed_by_hand(write_run):
    (line,) = accuracy_lines(group_runs(load_runs(write_run("a"))))
    assert line.x.tolist() == [1, 2, 3]
    assert line.mean == pytest.approx([0.9, 0.75, 23 / 30])
    low, high = wilson([9, 15, 23], [10, 20, 30])
    assert line.low == pytest.approx(low)
    assert line.high == pytest.approx(high)


def test_seeds_meet_where_all_were_measured(write_run, tmp_path):
    write_run("a", seed=0, matrix=[[9], [7, 8]], finish=True)
    write_run("b", seed=1, matrix=[[5], [], [6, 6, 6]])
    (line,) = accuracy_lines(group_runs(load_runs(tmp_path)))
    assert line.x.tolist() == [1]
    assert (line.mean[0], line.low[0], line.high[0]) == pytest.approx((0.7, 0.5, 0.9))


def test_seeds_that_never_meet_are_refused(write_run, tmp_path):
    write_run("a", seed=0, matrix=[[9]])
    write_run("b", seed=1, matrix=[[], [6, 6]])
    with pytest.raises(ValueError, match="seeds of dcl were never measured at the same moment"):
        accuracy_lines(group_runs(load_runs(tmp_path)))


def test_probes_are_of_the_first_task_and_by_the_ends_of_tasks(write_run, tmp_path):
    rows = [_probe(0, 1, -1), _probe(5, 9), _probe(10, 4, 1), _probe(10, 7, 1, tested=1)]
    write_run("a", more=rows)
    write_run("b", "joint", more=rows[:2])
    write_run("c", "ewc")
    panels = probe_lines(group_runs(load_runs(tmp_path)))
    ((ends, lines),) = panels.items()
    assert ends == (5, 10, 15)
    found = {line.label: (line.x.tolist(), line.mean.tolist()) for line in lines}
    assert found == {"dcl": ([0, 5, 10], [0.1, 0.9, 0.4]), "joint": ([0, 5], [0.1, 0.9])}


def test_of_two_probes_at_one_step_the_later_counts(write_run):
    folder = write_run("a", more=[_probe(5, 9, 0), _probe(5, 4, 1)])
    ((line,),) = probe_lines(group_runs(load_runs(folder))).values()
    assert (line.x.tolist(), line.mean.tolist()) == ([5], [0.4])


def test_labels_keep_a_gap_and_their_order():
    moved = spread([50, 10, 55], 10)
    assert moved == pytest.approx([47.5, 10, 57.5])


def test_crowded_labels_ask_for_a_legend():
    assert spread([10, 10, 10, 10], 10) is None
