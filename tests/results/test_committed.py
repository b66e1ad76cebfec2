"""The committed rows hold all runs and measurements of every experiment, and support its findings."""

from __future__ import annotations

import pytest

from everlearn.experiments.beyond import overview
from everlearn.experiments.framework.trial import PAPER
from everlearn.experiments.gnr.modes import final_accuracies
from everlearn.experiments.gnr.trials import AR1, NC, NIC
from everlearn.report import group_runs
from everlearn.runs.load import load_runs

pytest.importorskip("matplotlib")


def test_nothing_of_an_experiment_is_missing(drawn):
    for name, result in drawn.items():
        assert not result.missing, name
        assert not [verdict for verdict in result.verdicts if verdict.why == "no rows yet"], name


def test_the_runs_of_the_overview_are_one_report(committed):
    trials = overview.SETTINGS[PAPER].trials
    groups = group_runs(
        load_runs([committed.folder / trial.folder(trial.seeds[0]) for trial in trials])
    )
    assert {group.method for group in groups} == {trial.method for trial in trials}


def gnr_accuracies(committed, protocol):
    """Accuracy on all 50 classes at the end, mean of three seeds, by mode."""
    groups = committed.groups(protocol[PAPER].trials())
    assert [len(group.runs) for group in groups] == [3] * 8
    return final_accuracies(groups)


def test_replay_of_real_data_is_at_least_as_good_as_generated_negatives(committed):
    for protocol in (NC, NIC):
        accuracy = gnr_accuracies(committed, protocol)
        assert accuracy["PR-OD"] >= accuracy["NR-GD"] - 0.02


def test_generated_positives_are_no_better_than_ar1_without_replay(committed):
    accuracy = gnr_accuracies(committed, NC)
    assert accuracy["PR-GD"] <= accuracy[AR1] + 0.02


@pytest.mark.xfail(
    reason="0.733 and 0.776: what this generator makes is too good (gnr-generator)", strict=True
)
def test_generated_negatives_are_better_than_positives(committed):
    accuracy = gnr_accuracies(committed, NC)
    assert accuracy["NR-GD"] >= accuracy["PR-GD"] + 0.05


def test_random_negatives_are_better_than_positives(committed):
    for protocol in (NC, NIC):
        accuracy = gnr_accuracies(committed, protocol)
        assert accuracy["NR-RD"] >= accuracy["PR-RD"] + 0.03


def test_negative_replay_wins_where_replayed_data_are_not_recognised(drawn):
    (table,) = drawn["gnr-generator"].tables
    shares, gains = zip(*((float(row[2]), float(row[5])) for row in table.rows), strict=True)
    assert len(gains) == 15
    assert all((gain > 0) == (share < 0.25) for share, gain in zip(shares, gains, strict=True))
