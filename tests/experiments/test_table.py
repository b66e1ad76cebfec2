"""EXPERIMENTS: every entry is complete, valid at every scale, and draws an empty folder."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from everlearn.core.json_values import to_json_value
from everlearn.core.settings import change_settings, list_settings
from everlearn.evaluation import check_plan
from everlearn.experiments import EXPERIMENTS, find_experiment, result_names
from everlearn.experiments.framework.results_folder import at_scale
from everlearn.experiments.framework.runner import Runner
from everlearn.experiments.framework.scales import SCALES, find_scale
from everlearn.experiments.framework.trial import PAPER, SMALL, Trial
from everlearn.methods import build, find_method
from everlearn.report.verdict import VERDICTS

pytestmark = pytest.mark.integration

pytest.importorskip("matplotlib")

NAMES = list(EXPERIMENTS)

# Draws every experiment from an empty folder without torch and numba.
DRAW = """
import json, sys
from pathlib import Path

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "numba", "triton"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from everlearn.experiments import EXPERIMENTS
from everlearn.experiments.framework.results_folder import ResultsFolder

drawn = {}
for scale in ("tiny", "small", "paper"):
    for name, module in EXPERIMENTS.items():
        result = module.figure(ResultsFolder(Path(sys.argv[1]), scale))
        shown = [*result.figures, *result.tables, *result.pictures, *result.runs, *result.measurements]
        verdicts = [verdict._asdict() for verdict in result.verdicts]
        drawn[f"{scale} {name}"] = [verdicts, list(result.missing), len(shown)]
print(json.dumps(drawn))
"""


def trials_at(scale: str) -> list[Trial]:
    """Every trial of a scale, once for each experiment that has it."""
    modules = EXPERIMENTS.values()
    return [trial for module in modules for trial in at_scale(module.SETTINGS, scale).trials]


def different_at(scale: str) -> list[Trial]:
    """Every trial of a scale once."""
    return list({trial.name: trial for trial in trials_at(scale)}.values())


def settings_of(trial: Trial, runner: Runner) -> dict[str, Any]:
    return {**runner.preset_of(trial).settings_of(trial.method), **trial.settings}


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """Verdicts, missing names and the number of things shown, by scale and experiment."""
    folder = tmp_path_factory.mktemp("empty")
    words = [sys.executable, "-c", DRAW, str(folder)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not list(folder.iterdir())
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_has_a_title_a_claim_and_a_cost(name):
    module = EXPERIMENTS[name]
    words = [module.TITLE, module.SOURCE, module.CLAIM, module.COST[SMALL], module.COST[PAPER]]
    assert all(isinstance(text, str) and text.strip() for text in words)
    assert set(module.SETTINGS) == set(module.COST) == {SMALL, PAPER}
    assert callable(module.run)
    assert callable(module.figure)


def test_titles_are_unique():
    titles = [module.TITLE for module in EXPERIMENTS.values()]
    assert len(set(titles)) == len(titles)


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown experiment 'fig99'; known: all, .*fig4"):
        find_experiment("fig99")
    with pytest.raises(ValueError, match="unknown scale 'huge'; known: tiny, small, paper"):
        find_scale("huge")


@pytest.mark.parametrize("scale", SCALES)
def test_trials_of_the_same_name_differ_only_in_seeds(scale):
    found: dict[str, Trial] = {}
    for trial in trials_at(scale):
        alike = trial._replace(seeds=())
        assert found.setdefault(trial.name, alike) == alike


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", [SMALL, PAPER])
def test_labels_within_a_figure_are_unique(name, scale):
    trials = EXPERIMENTS[name].SETTINGS[scale].trials
    called = [(trial.title, str(trial.stream.get("scenario")), trial.base) for trial in trials]
    assert len(set(called)) == len(called)


@pytest.mark.parametrize("scale", SCALES)
def test_options_of_an_experiment_are_plain_values(scale):
    for module in EXPERIMENTS.values():
        to_json_value(dict(at_scale(module.SETTINGS, scale).options), "numbers")


@pytest.mark.parametrize("scale", SCALES)
def test_every_trial_has_valid_settings_stream_and_plan(scale, tmp_path, latents):
    runner = Runner(tmp_path, scale, "cpu")
    for trial in different_at(scale):
        stream = runner.stream(trial)
        own = change_settings(
            find_method(trial.method).settings(), settings_of(trial, runner), trial.method
        )
        check_plan(stream, replace(runner.preset_of(trial).plan, **trial.plan))
        assert not stream.online or list_settings(own)["epochs"] == 1, trial.name


@pytest.mark.parametrize("scale", ["tiny", "small"])
def test_every_trial_of_a_small_scale_can_be_built(scale, tmp_path):
    runner = Runner(tmp_path, scale, "cpu")
    for trial in different_at(scale):
        if trial.method != "l2p-lite":  # its weights are made by fig5
            build(trial.method, runner.stream(trial), "cpu", **settings_of(trial, runner))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", SCALES)
def test_an_empty_folder_gives_no_comparable_verdict(empty, scale, name):
    verdicts, missing, shown = empty[f"{scale} {name}"]
    assert verdicts
    assert shown == 0
    assert {found["verdict"] for found in verdicts} == {"not comparable"} <= set(VERDICTS)
    assert not any(found["measured"] for found in verdicts)
    assert any(found["why"] == "no rows yet" for found in verdicts) or name == "fig5"
    assert missing


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", SCALES)
def test_missing_results_are_named_once_and_as_only_accepts_them(empty, scale, name):
    _, missing, _ = empty[f"{scale} {name}"]
    assert len(set(missing)) == len(missing)
    assert set(missing) == result_names(EXPERIMENTS[name], scale)  # what --only takes
