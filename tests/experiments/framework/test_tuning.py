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
from everlearn.experiments.framework.shared_trials import SEEDS
from everlearn.experiments.framework.trial import EXTRACTOR
from everlearn.experiments.framework.tuning import Score, choose
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
