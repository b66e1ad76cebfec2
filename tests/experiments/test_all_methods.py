"""The experiments on all methods leave none out, and describe settings as they are typed."""

from __future__ import annotations

from typing import Any

import pytest

from everlearn.experiments.beyond import others, overview, toy
from everlearn.experiments.framework.results_folder import ResultsFolder
from everlearn.experiments.framework.trial import PAPER, SMALL
from everlearn.methods import METHODS
from everlearn.methods.tuned import TUNED

pytestmark = pytest.mark.integration


def trials(module: Any, scale: str = PAPER) -> dict[str, Any]:
    return {trial.name: trial for trial in module.SETTINGS[scale].trials}


def test_every_classifier_is_in_the_main_table_or_among_the_others():
    shown = {trial.method for module in (overview, others) for trial in trials(module).values()}
    left_out = {name for name in METHODS if name not in shown}
    assert left_out == {"l2p", "l2p-lite", "vase", "cci-vae", "beta-vae"}


def test_no_method_is_in_both_tables():
    both = [{trial.method for trial in trials(module).values()} for module in (overview, others)]
    assert not both[0] & both[1]


def test_methods_without_trials_have_the_learning_rate_chosen_for_a_related_one():
    found = trials(others)
    assert found["pcr"].settings["learning_rate"] == TUNED["er"]["learning_rate"]
    assert found["l2"].settings["reset_optimizer"] is TUNED["lwf"]["reset_optimizer"]


def test_methods_that_store_images_or_latents_store_as_many_as_the_main_table():
    found = {name: trial.settings.get("buffer_size") for name, trial in trials(others).items()}
    stored = {name for name, method in METHODS.items() if "a buffer" in method.stores}
    assert {name for name, size in found.items() if size == 5000} == stored & set(found)


@pytest.mark.parametrize("scale", [SMALL, PAPER])
def test_the_toy_stream_has_every_method_that_needs_no_images(scale):
    defaults = {trial.method for trial in trials(toy, scale).values() if not trial.settings}
    assert defaults == {name for name, method in METHODS.items() if not method.needs_images}


def test_toy_trials_are_named_and_labelled_by_their_options():
    found = {name: trial.label for name, trial in trials(toy).items()}
    assert found["toy-er"] == "er"
    assert found["toy-er-buffer-size-50-separate-means"] == "er --buffer-size 50 --separate-means"
    assert found["toy-l2-strength-0.01"] == "l2 --strength 0.01"


def rows(correct: int) -> list[dict[str, Any]]:
    """Two tasks, of each of which so many of ten images are correct whenever it is tested."""
    kinds = [("test", 0, 0), ("diagonal", 0, 0), ("test", 1, 0), ("test", 1, 1), ("diagonal", 1, 1)]
    return [
        {
            "kind": kind,
            "step": 1,
            "learned": learned,
            "tested": tested,
            "correct": correct,
            "total": 10,
        }
        for kind, learned, tested in kinds
    ]


def test_the_toy_stream_names_methods_that_do_not_learn(write_seeds, tmp_path):
    pytest.importorskip("matplotlib")
    write_seeds(trials(toy)["toy-er"], rows(9))
    write_seeds(trials(toy)["toy-lwf"], rows(8))
    write_seeds(trials(toy)["toy-si-strength-1"], rows(1))  # no default, so not counted
    (verdict,) = toy.figure(ResultsFolder(tmp_path, PAPER)).verdicts
    assert verdict.ours == "1 of 2 with 0.9 or more; not lwf"


def test_the_others_are_listed_apart_where_they_did_not_learn(write_seeds, tmp_path):
    pytest.importorskip("matplotlib")
    write_seeds(trials(others)["pcr"], rows(10))
    write_seeds(trials(others)["bir"], rows(1))
    learned, unlearned, why = others.figure(ResultsFolder(tmp_path, PAPER)).tables
    assert [row[0] for row in learned.rows] == ["pcr"]
    assert [(row[0], row[-1][:21]) for row in unlearned.rows] == [("bir", "maybe its fully conne")]
    assert [row[0] for row in why.rows] == ["bir"]


def test_joint_training_on_all_tasks_stands_in_the_row_of_joint(write_seeds, tmp_path):
    pytest.importorskip("matplotlib")
    ends = {"joint": (199, 9), "joint-500": (499, 8)}
    for name, (last, correct) in ends.items():
        row = {
            "kind": "test",
            "step": 1,
            "learned": last,
            "tested": 0,
            "correct": correct,
            "total": 10,
        }
        write_seeds(trials(overview)[name], [row])
    (table,) = overview.main_tables(ResultsFolder(tmp_path, PAPER))
    (cells,) = (dict(zip(table.head, row, strict=True)) for row in table.rows)
    assert cells["method"] == "joint"
    assert cells["after 200"].startswith("0.900")
    assert cells["after 500"] == "0.800 (1 seed)"
