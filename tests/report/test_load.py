"""Runs are read, labelled and refused as they should be."""

from __future__ import annotations

import subprocess
import sys

import pytest

from everlearn.report import group_runs
from everlearn.runs.load import load_run, load_runs

pytestmark = pytest.mark.integration


def test_the_report_loads_neither_torch_nor_matplotlib():
    code = (
        "import sys, everlearn.report;"
        "print(sorted({'torch', 'matplotlib', 'numba', 'everlearn.stream'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_runs_are_found_below_a_folder_once(write_run, tmp_path):
    folder = write_run("a/b")
    write_run("c", method="joint")
    runs = load_runs([tmp_path, folder, str(folder)])
    assert [(run.label, run.seed, run.finished) for run in runs] == [
        ("dcl", 0, True),
        ("joint", 0, True),
    ]


def test_one_folder_needs_no_list(write_run):
    folder = write_run("a")
    assert load_runs(folder)[0].folder == load_runs(str(folder))[0].folder == folder


def test_a_run_keeps_its_rows_costs_and_origin(write_run):
    run = load_runs(write_run("a"))[0]
    assert (len(run.rows), len(run.costs), len(run.sessions)) == (6, 3, 1)
    assert run.summary["average_accuracy"] == pytest.approx((0.6 + 0.7 + 1.0) / 3)


def test_seeds_of_one_setting_are_one_group(write_run, tmp_path):
    for seed in (2, 0, 1):
        write_run(f"s{seed}", seed=seed)
    (group,) = group_runs(load_runs(tmp_path))
    assert (group.label, group.seeds) == ("dcl", [0, 1, 2])


def test_groups_come_best_first(write_run, tmp_path):
    write_run("a", "ewc", matrix=[[1]])
    write_run("b", "joint", matrix=[[9]])
    assert [group.label for group in group_runs(load_runs(tmp_path))] == ["joint", "ewc"]


def test_labels_tell_the_settings_that_differ(write_run, tmp_path):
    write_run("a", settings={"jitter": 0.0, "learning_rate": 0.1, "reset_optimizer": True})
    write_run("b", settings={"jitter": 0.5, "learning_rate": 0.1, "reset_optimizer": False})
    write_run("c", "joint", settings={"jitter": 7})
    labels = [run.label for run in load_runs(tmp_path)]
    assert labels == [
        "dcl, jitter 0.0, reset optimizer on",
        "dcl, jitter 0.5, reset optimizer off",
        "joint",
    ]


def test_a_setting_that_one_run_lacks_tells_them_apart(write_run, tmp_path):
    write_run("a", settings={"crop": None})
    write_run("b")
    assert [r.label for r in load_runs(tmp_path)] == ["dcl, crop none", "dcl, crop not set"]


def test_cards_of_one_machine_are_alike_but_not_card_and_cpu(write_run, tmp_path):
    write_run("a", seed=0, device="cuda:0")
    write_run("b", seed=1, device="cuda:1")
    assert {run.label for run in load_runs(tmp_path)} == {"dcl"}
    write_run("c", seed=0, device="cpu")
    assert {run.label for run in load_runs(tmp_path)} == {"dcl, device cpu", "dcl, device cuda"}


def test_unfinished_runs_stand_apart(write_run, tmp_path):
    write_run("a", seed=0)
    write_run("b", seed=1, matrix=[[9], [7, 8]], finish=False)
    groups = group_runs(load_runs(tmp_path))
    assert {group.label for group in groups} == {"dcl", "dcl (2 of 3 tasks)"}


def test_an_unfinished_run_of_an_endless_stream_says_so(write_run):
    folder = write_run("a", matrix=[[9]], finish=False, tasks=None)
    assert load_runs(folder)[0].label == "dcl (1 tasks so far)"


def test_other_streams_are_refused(write_run, tmp_path):
    write_run("a", tasks=3)
    write_run("b", method="joint", tasks=4)
    with pytest.raises(ValueError, match=r"tasks is 3 in .*a and 4 in .*b; report them separately"):
        load_runs(tmp_path)


CLASS = {"name": "class"}


def test_a_shorter_class_incremental_stream_begins_the_longer(write_run, tmp_path):
    write_run("a", tasks=3, scenario=CLASS)
    write_run("b", method="joint", tasks=9, scenario=CLASS)
    assert [run.label for run in load_runs(tmp_path)] == ["dcl", "joint"]


@pytest.mark.parametrize("scenario", [{"name": "domain"}, {"name": "class", "more": 1}])
def test_streams_of_other_scenarios_have_one_length(write_run, tmp_path, scenario):
    write_run("a", tasks=3, scenario=scenario)
    write_run("b", method="joint", tasks=9, scenario=scenario)
    with pytest.raises(ValueError, match="tasks is 3 in"):
        load_runs(tmp_path)


def test_lengths_and_canvases_of_one_method_are_never_averaged(write_run, tmp_path):
    write_run("a", seed=0, tasks=3, scenario=CLASS, canvas={"size": 64, "channels": 1})
    write_run("b", seed=1, tasks=9, scenario=CLASS, canvas={"size": 64, "channels": 1})
    write_run("c", seed=2, tasks=9, scenario=CLASS, canvas={"size": 128, "channels": 1})
    assert [run.label for run in load_runs(tmp_path)] == [
        "dcl, canvas size 128, tasks 9",
        "dcl, canvas size 64, tasks 3",
        "dcl, canvas size 64, tasks 9",
    ]


def test_one_run_is_read_under_the_label_given(write_run):
    folder = write_run("a")
    assert load_run(folder).label == "dcl"
    assert load_run(folder, "ours").label == "ours"
    assert load_run(folder)._replace(label="ours") == load_run(folder, "ours")


def test_a_seed_counts_once(write_run, tmp_path):
    write_run("a")
    write_run("b")
    with pytest.raises(ValueError, match=r"both dcl with seed 0; .* leave out one of them"):
        load_runs(tmp_path)


def test_a_folder_without_runs_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no run"):
        load_runs(tmp_path)
    with pytest.raises(FileNotFoundError, match="is not a folder"):
        load_runs(tmp_path / "nowhere")


def test_no_folder_is_refused():
    with pytest.raises(ValueError, match="name at least one"):
        load_runs([])


def test_a_run_must_name_its_method(write_run):
    folder = write_run("a", method=None)
    with pytest.raises(ValueError, match="must name a method, found None"):
        load_runs(folder)


def test_labels_hold_no_control_characters(write_run):
    assert load_runs(write_run("a", "a\x00b\nc"))[0].label == "a?b?c"
