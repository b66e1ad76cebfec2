"""The committed rows are whole: every experiment finds all of its runs and measurements in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from everlearn.experiments import EXPERIMENTS, overview
from everlearn.experiments.found import Found
from everlearn.experiments.pages import scale_of
from everlearn.experiments.trial import PAPER
from everlearn.report import group_runs, load_runs

pytest.importorskip("matplotlib")

ROWS = Path(__file__).parents[2] / "results" / "paper"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not ROWS.is_dir(), reason="the committed rows are not here"),
]


def test_nothing_of_an_experiment_is_missing():
    found = Found(ROWS, str(scale_of(ROWS)))
    for name, module in EXPERIMENTS.items():
        chapter = module.figure(found)
        assert chapter.missing == [], name
        assert not [verdict for verdict in chapter.verdicts if verdict.why == "no rows yet"], name


def test_the_runs_of_the_overview_are_one_report():
    trials = overview.SETTINGS[PAPER].trials
    groups = group_runs(load_runs([ROWS / trial.folder(trial.seeds[0]) for trial in trials]))
    assert {group.method for group in groups} == {trial.method for trial in trials}
