"""EXPERIMENTS: every entry is whole, can be built at every scale, and draws what little is there."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from everlearn.exam import check_exams
from everlearn.experiments import EXPERIMENTS, find_experiment, names_of
from everlearn.experiments.found import at_scale
from everlearn.experiments.lab import Lab
from everlearn.experiments.scales import SCALES, find_scale
from everlearn.experiments.trial import PAPER, SMALL, Trial
from everlearn.methods import build, find_method
from everlearn.report.verdict import VERDICTS
from everlearn.results.plain import plain
from everlearn.settings import change_settings, list_settings

pytest.importorskip("matplotlib")

NAMES = list(EXPERIMENTS)
NOT_OURS = ("not measured", "not asked")

# Draws every experiment from empty folders where neither torch nor numba can be had.
DRAW = """
import json, sys
from pathlib import Path

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "numba", "triton"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from everlearn.experiments import EXPERIMENTS
from everlearn.experiments.found import Found

drawn = {}
for scale in ("tiny", "small", "paper"):
    for name, module in EXPERIMENTS.items():
        chapter = module.figure(Found(Path(sys.argv[1]), scale))
        shown = [*chapter.figures, *chapter.tables, *chapter.pictures, *chapter.runs, *chapter.parts]
        drawn[f"{scale} {name}"] = [list(chapter.verdicts), list(chapter.missing), len(shown)]
print(json.dumps(drawn))
"""


def trials_at(scale: str) -> list[Trial]:
    """Every trial of a scale, once for each experiment that has it."""
    modules = EXPERIMENTS.values()
    return [trial for module in modules for trial in at_scale(module.SETTINGS, scale).trials]


def different_at(scale: str) -> list[Trial]:
    """Every trial of a scale once."""
    return list({trial.name: trial for trial in trials_at(scale)}.values())


def settings_of(trial: Trial, lab: Lab) -> dict[str, Any]:
    return {**lab.preset_of(trial).settings_of(trial.method), **trial.settings}


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
def test_an_experiment_says_what_it_is_and_what_it_costs(name):
    module = EXPERIMENTS[name]
    words = [module.TITLE, module.SOURCE, module.CLAIM, module.COST[SMALL], module.COST[PAPER]]
    assert all(isinstance(text, str) and text.strip() for text in words)
    assert set(module.SETTINGS) == set(module.COST) == {SMALL, PAPER}
    assert callable(module.run)
    assert callable(module.figure)


def test_no_two_experiments_have_one_title():
    titles = [module.TITLE for module in EXPERIMENTS.values()]
    assert len(set(titles)) == len(titles)


def test_unknown_names_are_answered_with_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown experiment 'fig99'; known: all, .*fig4"):
        find_experiment("fig99")
    with pytest.raises(ValueError, match="unknown scale 'huge'; known: tiny, small, paper"):
        find_scale("huge")


@pytest.mark.parametrize("scale", SCALES)
def test_trials_of_one_name_are_the_same_but_for_seeds(scale):
    found: dict[str, Trial] = {}
    for trial in trials_at(scale):
        alike = trial._replace(seeds=())
        assert found.setdefault(trial.name, alike) == alike


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", [SMALL, PAPER])
def test_a_figure_calls_no_two_of_its_lines_the_same(name, scale):
    trials = EXPERIMENTS[name].SETTINGS[scale].trials
    called = [(trial.title, trial.stream.get("scenario"), trial.base) for trial in trials]
    assert len(set(called)) == len(called)


@pytest.mark.parametrize("scale", SCALES)
def test_numbers_of_an_experiment_are_plain(scale):
    for module in EXPERIMENTS.values():
        plain(dict(at_scale(module.SETTINGS, scale).numbers), "numbers")


@pytest.mark.parametrize("scale", SCALES)
def test_every_trial_has_settings_a_stream_and_exams_that_are_allowed(scale, tmp_path, latents):
    lab = Lab(tmp_path, scale, "cpu")
    for trial in different_at(scale):
        stream = lab.stream(trial)
        own = change_settings(
            find_method(trial.method).settings(), settings_of(trial, lab), trial.method
        )
        check_exams(stream, replace(lab.preset_of(trial).plan, **trial.plan))
        assert not stream.online or list_settings(own)["epochs"] == 1, trial.name


@pytest.mark.parametrize("scale", ["tiny", "small"])
def test_every_trial_of_a_small_scale_can_be_built(scale, tmp_path):
    lab = Lab(tmp_path, scale, "cpu")
    for trial in different_at(scale):
        if trial.method != "l2p-lite":  # its weights are made by fig5
            build(trial.method, lab.stream(trial), "cpu", **settings_of(trial, lab))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", SCALES)
def test_an_empty_folder_gives_verdicts_that_say_so(empty, scale, name):
    verdicts, missing, shown = empty[f"{scale} {name}"]
    assert verdicts
    assert shown == 0
    assert {word for _, _, _, word, _ in verdicts} == {"not comparable"} <= set(VERDICTS)
    assert all(ours in NOT_OURS for _, _, ours, _, _ in verdicts)
    assert any(why == "no rows yet" for *_, why in verdicts) or name == "fig5"
    assert missing


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", SCALES)
def test_what_is_missing_is_named_once_as_it_is_made(empty, scale, name):
    _, missing, _ = empty[f"{scale} {name}"]
    assert len(set(missing)) == len(missing)
    assert set(missing) == names_of(EXPERIMENTS[name], scale)  # what --only takes
