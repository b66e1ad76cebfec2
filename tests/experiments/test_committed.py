"""The committed rows are whole: every experiment finds all of its runs and measurements in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from everlearn.experiments import EXPERIMENTS, overview
from everlearn.experiments.found import Found
from everlearn.experiments.gnr import AR1, NC, NIC
from everlearn.experiments.gnr_modes import ends_of
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
    for name, experiment in EXPERIMENTS.items():
        chapter = experiment.figure(found)
        assert chapter.missing == [], name
        assert not [verdict for verdict in chapter.verdicts if verdict.why == "no rows yet"], name


def test_the_runs_of_the_overview_are_one_report():
    trials = overview.SETTINGS[PAPER].trials
    groups = group_runs(load_runs([ROWS / trial.folder(trial.seeds[0]) for trial in trials]))
    assert {group.method for group in groups} == {trial.method for trial in trials}


def gnr_ends(protocol):
    """Accuracy on all 50 classes at the end, the mean of three seeds, by mode."""
    groups = Found(ROWS, PAPER).groups(protocol[PAPER].trials())
    assert [len(group.runs) for group in groups] == [3] * 8
    return ends_of(groups)


def test_n13_real_data_teach_at_least_as_well_as_generated_negatives():
    for protocol in (NC, NIC):
        at = gnr_ends(protocol)
        assert at["PR-OD"] >= at["NR-GD"] - 0.02


def test_n13_generated_positives_are_no_better_than_the_papers_no_replay():
    at = gnr_ends(NC)
    assert at["PR-GD"] <= at[AR1] + 0.02


@pytest.mark.xfail(
    reason="0.733 and 0.776: what this generator makes is too good (gnr-generator)", strict=True
)
def test_n13_generated_negatives_are_better_than_positives():
    at = gnr_ends(NC)
    assert at["NR-GD"] >= at["PR-GD"] + 0.05


def test_random_negatives_are_better_than_positives():
    for protocol in (NC, NIC):
        at = gnr_ends(protocol)
        assert at["NR-RD"] >= at["PR-RD"] + 0.03


def test_negatives_pay_where_what_is_replayed_is_not_recognised():
    chapter = EXPERIMENTS["gnr-generator"].figure(Found(ROWS, PAPER))
    (table,) = chapter.tables
    shares, gains = zip(*((float(row[2]), float(row[5])) for row in table.rows), strict=True)
    assert len(gains) == 15
    assert all((gain > 0) == (share < 0.25) for share, gain in zip(shares, gains, strict=True))
