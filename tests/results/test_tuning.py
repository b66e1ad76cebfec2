"""The settings of preset `paper` are those that the committed trials choose, and every method had eight."""

from __future__ import annotations

from pathlib import Path

import pytest

from everlearn.experiments.framework.grids import GRIDS, TRIALS
from everlearn.experiments.framework.results_folder import ResultsFolder
from everlearn.experiments.framework.tuning import choose, scores
from everlearn.methods import METHODS
from everlearn.methods.tuned import TUNED_KEPT

ROWS = Path(__file__).parents[2] / "results" / "tuning"


@pytest.fixture(scope="module")
def trials() -> ResultsFolder:
    return ResultsFolder(ROWS, "paper")


@pytest.mark.parametrize("method", GRIDS)
def test_every_method_had_as_many_trials(trials, method):
    assert len(scores(trials, method)) == TRIALS


@pytest.mark.parametrize("method", GRIDS)
def test_the_preset_has_the_settings_that_the_trials_choose(trials, method):
    chosen = choose(scores(trials, method)).trial.settings
    varied = {name: chosen[name] for name in GRIDS[method].choices}
    preset = METHODS[method].settings_for("gpu", "paper")
    assert {name: preset.get(name) for name in varied} == varied


@pytest.mark.parametrize(
    "method", [name for name in GRIDS if "reset_optimizer" in GRIDS[name].choices]
)
def test_the_settings_with_a_kept_state_are_those_that_such_trials_choose(trials, method):
    kept = [s for s in scores(trials, method) if not s.trial.settings["reset_optimizer"]]
    varied = {name: choose(kept).trial.settings[name] for name in GRIDS[method].choices}
    preset = METHODS[method].settings_for("gpu", "paper")
    expected = preset | TUNED_KEPT.get(method, {}) | {"reset_optimizer": False}
    assert {name: expected.get(name) for name in varied} == varied


def test_no_tuning_run_was_tested_on_test_images(trials):
    for method in GRIDS:
        for score in scores(trials, method):
            (group,) = trials.groups([score.trial])
            assert {run.split for run in group.runs} == {"val"}
            assert {run.seed for run in group.runs} <= set(range(100, 105))
