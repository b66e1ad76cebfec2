"""Tuning: every method has the same number of trials, and learning its tasks comes first."""

from __future__ import annotations

from pathlib import Path

import pytest

from everlearn.core.settings import change_settings
from everlearn.experiments.framework.grids import (
    GRIDS,
    MAX_SETTINGS,
    TRIALS,
    TUNING_SEEDS,
    find_grid,
    tuning_trials,
)
from everlearn.experiments.framework.pages import read_scale, write_scale
from everlearn.experiments.framework.results_folder import ResultsFolder
from everlearn.experiments.framework.shared_trials import SEEDS
from everlearn.experiments.framework.trial import EXTRACTOR
from everlearn.experiments.framework.tuning import Score, choose, scores
from everlearn.methods import find_method

TRIAL = tuning_trials("er", "small")[0]


@pytest.mark.parametrize("scale", ["small", "paper"])
@pytest.mark.parametrize("method", GRIDS)
def test_every_method_has_eight_trials_of_at_most_three_settings(method, scale):
    trials = tuning_trials(method, scale)
    assert len(trials) == TRIALS
    assert len({trial.name for trial in trials}) == TRIALS
    assert len({repr(sorted(trial.settings.items())) for trial in trials}) == TRIALS
    assert len(find_grid(method).choices) <= MAX_SETTINGS


@pytest.mark.parametrize("method", GRIDS)
def test_the_settings_of_every_trial_exist(method):
    defaults = find_method(method).settings()
    for trial in tuning_trials(method, "paper"):
        settings = {name: value for name, value in trial.settings.items() if value != EXTRACTOR}
        change_settings(defaults, settings, method)


def test_trials_see_validation_images_of_seeds_that_are_not_reported():
    trials = [trial for method in GRIDS for trial in tuning_trials(method, "paper")]
    assert {trial.plan["split"] for trial in trials} == {"val"}
    assert {seed for trial in trials for seed in trial.seeds} == set(TUNING_SEEDS)
    assert not set(TUNING_SEEDS) & set(SEEDS)


def test_a_trial_that_learned_its_tasks_wins_over_a_better_one_that_did_not():
    learned = Score(TRIAL, 0.5, 0.9)
    unlearned = Score(TRIAL, 0.8, 0.89)
    assert choose([unlearned, learned]) is learned


def test_the_highest_accuracy_wins_among_trials_that_learned():
    best = Score(TRIAL, 0.6, 0.91)
    assert choose([Score(TRIAL, 0.5, 1.0), best, Score(TRIAL, 0.55, 0.95)]) is best


def test_where_none_learned_the_highest_learning_accuracy_wins():
    best = Score(TRIAL, 0.1, 0.6)
    assert choose([Score(TRIAL, 0.2, 0.5), best]) is best


def test_learning_accuracy_decides_between_trials_of_equal_accuracy():
    best = Score(TRIAL, 0.05, 0.99)
    assert choose([Score(TRIAL, 0.05, 0.93), best, Score(TRIAL, 0.04, 1.0)]) is best


def test_of_equal_trials_the_first_is_chosen():
    first = Score(TRIAL, 0.5, 0.99)
    assert choose([first, Score(TRIAL, 0.5, 0.99)]) is first


def test_joint_training_has_no_learning_accuracy_and_is_chosen_by_accuracy():
    best = Score(TRIAL, 0.9, None)
    assert choose([Score(TRIAL, 0.8, None), best]) is best


def test_the_bound_of_learning_is_that_of_all_tables():
    rounded = Score(TRIAL, 0.5, 0.9 - 1e-12)  # what a mean of 0.9 may come to
    assert choose([Score(TRIAL, 0.4, 0.95), rounded]) is rounded


def test_without_trials_nothing_is_chosen():
    with pytest.raises(ValueError, match="there are no finished trials to choose from"):
        choose([])


def test_a_trial_without_learning_accuracy_is_refused(write_run, tmp_path: Path):
    row = {"kind": "test", "step": 1, "learned": 1, "tested": 0, "correct": 1, "total": 2}
    write_run(TRIAL, [row], TRIAL.seeds[0], tasks=3)
    with pytest.raises(ValueError, match="er-1-seed100 has no learning accuracy") as raised:
        scores(ResultsFolder(tmp_path, "small"), "er")
    assert "\n" not in str(raised.value)


def test_a_folder_of_another_scale_is_refused_before_anything_is_written(tmp_path: Path, command):
    write_scale(tmp_path, "paper")
    found = command("tune", "er", "--scale", "small", "--out", str(tmp_path), "--device", "cpu")
    assert found.code == 2
    assert f"{tmp_path} holds runs of scale paper, not small" in found.errors
    assert [path.name for path in tmp_path.iterdir()] == ["reproduce.json"]
    assert read_scale(tmp_path) == "paper"


def test_the_report_of_a_tuning_folder_is_its_table(write_run, tmp_path: Path, command):
    row = {"kind": "test", "step": 1, "learned": 0, "tested": 0, "correct": 1, "total": 2}
    write_run(TRIAL, [row], TRIAL.seeds[0], tasks=1)
    write_scale(tmp_path, "small")
    before = sorted(tmp_path.rglob("*"))
    found = command("report", str(tmp_path))
    assert found.code == 0, found.errors
    assert "| er 1 | learning\\_rate 0.0001, reset\\_optimizer False | 0.500 | 0.500 |" in found.out
    assert sorted(tmp_path.rglob("*")) == before
    refused = command("report", str(tmp_path), "--out", str(tmp_path / "page"))
    assert refused.code == 2
    assert f"{tmp_path} holds trials of everlearn tune, which have a table" in refused.errors


def test_an_unknown_method_is_named_with_those_that_have_a_grid():
    with pytest.raises(ValueError, match="no grid for method 'derp'; methods with one: joint, "):
        find_grid("derp")


@pytest.mark.slow
def test_one_trial_can_be_run_alone(tmp_path: Path, command):
    found = command("tune", "er", "--only", "er-1", "--out", str(tmp_path), "--device", "cpu")
    assert found.code == 0
    assert [path.parent.name for path in tmp_path.glob("*/done.json")] == ["er-1-seed100"]


def test_an_unknown_trial_is_refused_in_one_line(tmp_path: Path, command):
    found = command("tune", "er", "--only", "er-9", "--out", str(tmp_path))
    assert found.code == 2
    assert "unknown trials ['er-9']; known: er-1, er-2" in found.errors
