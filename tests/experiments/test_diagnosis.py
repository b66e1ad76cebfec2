"""Diagnostics of methods that did not learn, from hand-written runs."""

from __future__ import annotations

import pytest

from everlearn.experiments.beyond.diagnosis import diagnosis_table
from everlearn.experiments.framework.results_folder import ResultsFolder
from everlearn.experiments.framework.trial import PAPER, Trial

pytestmark = pytest.mark.integration


def task_rows(task, correct, loss, **diagnostics):
    learned = task - 1
    where = {"step": task, "learned": learned}
    yield {"kind": "test", **where, "tested": 0, "correct": 10, "total": 10}
    yield {"kind": "diagonal", **where, "tested": learned, "correct": correct, "total": 10}
    yield {
        "kind": "task", **where, "images": 1, "seconds": 1.0, "evaluation_seconds": 1.0,
        "loss": loss, "host_memory": 1, "memory": 1, "peak_memory": 1,
        "diagnostics": diagnostics,
    }  # fmt: skip


def test_the_first_the_tenth_and_the_last_task_are_shown(write_run, tmp_path):
    trial = Trial("a", "gnr")
    rows = [
        *task_rows(1, 9, 0.5, new_norm=2.0, recognised=None),
        *task_rows(10, 4, 0.7, new_norm=1.0, recognised=0.25),
        *task_rows(12, 3, 123.4, new_norm=0.5, recognised=0.125),
    ]
    write_run(trial, rows, tasks=12)
    table = diagnosis_table(ResultsFolder(tmp_path, PAPER).groups([trial]))
    # full tests of the first task count before its row of kind diagonal
    assert table.rows == [["a", "1", "0.4", "0.3", "0.5", "123", "2", "0.5", "0.25", "0.125"]]


def test_what_was_not_measured_is_a_dash(write_run, tmp_path):
    trial = Trial("a", "gdumb")
    write_run(trial, task_rows(2, 3, None), tasks=2)
    table = diagnosis_table(ResultsFolder(tmp_path, PAPER).groups([trial]))
    assert table.rows == [["a", "–", "–", "0.3", *"––––––"]]
