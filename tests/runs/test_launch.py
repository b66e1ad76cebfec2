"""Runs that are killed at any moment and resumed end with the same rows."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from everlearn import Canvas, Stream
from everlearn.core.json_values import to_json_value
from everlearn.core.settings import change_settings, list_settings
from everlearn.evaluation import Plan
from everlearn.evaluation.costs import DivergedError
from everlearn.methods import find_method
from everlearn.methods.dcl import DCL
from everlearn.runs import Run, read_costs, read_rows
from everlearn.runs import launch as runs

pytestmark = pytest.mark.integration

STREAM = Stream(
    tasks=3, classes_per_task=3, values_per_factor=3, canvas=Canvas(size=16), split=(0.7, 0.1, 0.2)
)
SMALL: dict[str, Any] = {"net": "convnet", "batch_size": 32, "epochs": 1}
PLAN = Plan(probe_every=2, within_task=True, one_shot=(4,), open_set=True)


def start(folder: Path, **changes: Any) -> Any:
    return runs.start(folder, "dcl", STREAM, PLAN, "cpu", 0.0, **(SMALL | changes))


def rows_of(folder: Path) -> bytes:
    return (folder / "rows.jsonl").read_bytes()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    list(start(folder))
    return folder


def test_a_run_keeps_its_rows_costs_settings_and_summary(whole: Path) -> None:
    run = Run.open(whole)
    assert run.finished
    assert run.settings["method"] == "dcl"
    assert run.settings["settings"]["batch_size"] == 32
    assert Stream.from_json(run.stream) == STREAM
    assert {row["kind"] for row in read_rows(whole)} == {
        "probe",
        "test",
        "within_task",
        "diagonal",
        "theta",
        "one-shot",
        "open-set",
    }
    assert [row["learned"] for row in read_costs(whole)] == [0, 1, 2]


@pytest.mark.slow
@pytest.mark.parametrize("stop", [3, 17, 29, 43])
def test_a_run_stopped_at_any_row_resumes_to_the_same_bytes(
    whole: Path, tmp_path: Path, stop: int
) -> None:
    going = start(tmp_path / "run")
    for _ in range(stop):
        next(going)
    going.close()
    list(runs.resume(tmp_path / "run"))
    assert rows_of(tmp_path / "run") == rows_of(whole)


def test_a_loaded_learner_predicts_as_at_the_end_of_its_run(whole: Path) -> None:
    learner = runs.load_learner(whole, "cpu")
    last = [row for row in read_rows(whole) if row["kind"] == "test" and row["learned"] == 2]
    for row in last:
        batch = STREAM[row["tested"]].test.batch(slice(None))
        assert int((learner.predict(batch.images) == batch.labels).sum()) == row["correct"]


def test_a_run_that_diverges_keeps_its_last_checkpoint(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    going = start(folder)
    row = next(row for row in going if row["kind"] == "task")
    going.close()
    kept = (folder / "checkpoint.npz").read_bytes()
    learner = runs.load_learner(folder, "cpu")
    broken = [torch.full_like(weight, torch.nan) for weight in learner.net.parameters()]

    def spoil(*_: Any, **__: Any) -> Any:
        with torch.no_grad():
            for weight, value in zip(learner.net.parameters(), broken, strict=True):
                weight.copy_(value)
        return learner

    learner.load_state = spoil  # type: ignore[method-assign]
    run = Run.open(folder)
    with pytest.raises(DivergedError, match=f"of task {row['learned'] + 1}"):
        list(runs._run_tasks(run, STREAM, learner, PLAN, 0.0))
    assert (folder / "checkpoint.npz").read_bytes() == kept
    assert not run.finished


def test_a_finished_run_takes_no_more_rows(whole: Path) -> None:
    with pytest.raises(ValueError, match="is finished"):
        list(runs.resume(whole))


def test_a_folder_of_another_run_is_refused_and_unchanged(whole: Path) -> None:
    before = rows_of(whole)
    with pytest.raises(ValueError, match="epochs"):
        list(start(whole, epochs=2))
    assert rows_of(whole) == before


def test_two_writers_are_refused(tmp_path: Path) -> None:
    going = start(tmp_path / "run")
    next(going)
    with pytest.raises(BlockingIOError):
        list(runs.resume(tmp_path / "run"))
    going.close()


def test_a_run_without_a_checkpoint_has_no_learner_yet(tmp_path: Path) -> None:
    going = start(tmp_path / "run")
    next(going)
    going.close()
    with pytest.raises(ValueError, match="no checkpoint: let the run complete"):
        runs.load_learner(tmp_path / "run", "cpu")


def test_a_finished_run_without_a_checkpoint_has_no_learner(whole: Path, tmp_path: Path) -> None:
    folder = copy(whole, tmp_path / "run")
    (folder / "checkpoint.npz").unlink()
    with pytest.raises(ValueError, match=r"no checkpoint: it is finished, .* repeat the run"):
        runs.load_learner(folder, "cpu")


GPU_OPTIONS = (
    *("--preset", "paper", "--tasks", "4", "--values", "4", "--every", "1", "--epochs", "2"),
    *("--one-shot", "10", "--final-after", "2", "--jitter", "0.5", "--weight-averaging", "0.5"),
    *("--device", "cuda", "--save-seconds", "0"),
)


def command(*words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "everlearn", *words], env={**os.environ})


@pytest.mark.gpu
def test_a_run_on_a_gpu_killed_twice_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    folder = tmp_path / "killed"
    assert command("run", "dcl", *GPU_OPTIONS, "--out", str(tmp_path / "whole")).wait(200) == 0
    going = command("run", "dcl", *GPU_OPTIONS, "--out", str(folder))
    for learned in (1, 2):
        while len(read_costs(folder) if (folder / "settings.json").exists() else []) < learned:
            assert going.poll() is None
            time.sleep(0.01)
        going.send_signal(signal.SIGKILL)
        going.wait(20)
        going = command("resume", str(folder))
    assert going.wait(200) == 0
    assert rows_of(folder) == rows_of(tmp_path / "whole")


def test_a_folder_of_something_else_is_not_resumed(tmp_path: Path) -> None:
    Run.create(tmp_path / "run", STREAM.to_json(), {"method": "dcl", "plan": {}})
    for verb in (runs.resume, runs.load_learner):
        with pytest.raises(ValueError, match="lacks settings, device, save_seconds"):
            verb(tmp_path / "run")


def test_nan_weights_do_not_replace_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    going = start(tmp_path / "run")
    while next(going)["kind"] != "task":
        pass
    kept = (tmp_path / "run" / "checkpoint.npz").read_bytes()
    monkeypatch.setattr(DCL, "state", lambda self: {"net": torch.tensor(torch.nan)})
    with pytest.raises(DivergedError, match="the learner's net"):
        list(going)
    assert (tmp_path / "run" / "checkpoint.npz").read_bytes() == kept


def test_a_plan_that_the_stream_does_not_support_leaves_no_folder(tmp_path: Path) -> None:
    stream = STREAM.with_changes(split=(0.9, 0.1, 0.0))
    with pytest.raises(ValueError, match="need test images"):
        runs.start(tmp_path / "run", "dcl", stream, PLAN, "cpu", 0.0, **SMALL)
    assert not (tmp_path / "run").exists()


def ensure(folder: Path, plan: Plan = PLAN, method: str = "dcl", **changes: Any) -> Any:
    return runs.ensure(folder, method, STREAM, plan, "cpu", 0.0, **(SMALL | changes))


def copy(whole: Path, folder: Path, **changes: Any) -> Path:
    """A finished run whose settings file says something else."""
    shutil.copytree(whole, folder)
    path = folder / "settings.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return folder


def test_ensure_starts_a_run_and_resumes_it(whole: Path, tmp_path: Path) -> None:
    going = ensure(tmp_path / "run")
    for row in going:
        if row["kind"] == "task" and row["learned"] == 1:
            break
    going.close()
    rest = list(ensure(tmp_path / "run"))
    assert {row["learned"] for row in rest} == {2}
    assert rows_of(tmp_path / "run") == rows_of(whole)
    assert Run.open(tmp_path / "run").finished


def test_ensure_does_not_change_a_finished_run(whole: Path) -> None:
    before = rows_of(whole)
    assert ensure(whole) is None
    assert rows_of(whole) == before


def test_ensure_accepts_a_run_finished_on_another_device(whole: Path, tmp_path: Path) -> None:
    folder = copy(whole, tmp_path / "run", device="cuda", save_seconds=99.0)
    assert ensure(folder) is None
    assert rows_of(folder) == rows_of(whole)


def test_ensure_refuses_an_unfinished_run_of_another_device(whole: Path, tmp_path: Path) -> None:
    folder = copy(whole, tmp_path / "run", device="cuda")
    (folder / "done.json").unlink()
    with pytest.raises(ValueError, match="another run: its setting device"):
        ensure(folder)


def test_ensure_accepts_a_run_that_is_older_than_a_setting(whole: Path, tmp_path: Path) -> None:
    settings = dict(Run.open(whole).settings["settings"])
    del settings["jitter"]
    assert ensure(copy(whole, tmp_path / "run", settings=settings)) is None


def test_ensure_accepts_a_run_that_is_older_than_an_evaluation(whole: Path, tmp_path: Path) -> None:
    plan = dict(Run.open(whole).settings["plan"])
    del plan["all_classes_every"]
    folder = copy(whole, tmp_path / "run", plan=plan)
    assert ensure(folder) is None
    with pytest.raises(ValueError, match="another run"):
        ensure(folder, replace(PLAN, all_classes_every=1))


@pytest.mark.parametrize("images", [0, 200])
def test_ensure_accepts_a_run_that_is_older_than_diagonal_rows(
    whole: Path, tmp_path: Path, images: int
) -> None:
    plan = dict(Run.open(whole).settings["plan"])
    del plan["diagonal_images"]
    older = copy(whole, tmp_path / "run", plan=plan)
    assert ensure(older, replace(PLAN, diagonal_images=images)) is None
    with pytest.raises(ValueError, match="another run"):
        ensure(whole, replace(PLAN, diagonal_images=7))


def test_ensure_refuses_an_older_run_where_a_newer_setting_is_changed(
    whole: Path, tmp_path: Path
) -> None:
    settings = {**Run.open(whole).settings["settings"]}
    del settings["jitter"]
    older = copy(whole, tmp_path / "run", settings=settings)
    with pytest.raises(ValueError, match="another run"):
        ensure(older, jitter=0.5)


def test_an_older_run_lacks_options_that_its_method_now_turns_on(
    whole: Path, tmp_path: Path
) -> None:
    now = change_settings(find_method("dcl-plus").settings(), SMALL, "dcl-plus")
    settings = to_json_value(list_settings(now), "settings")
    assert settings.pop("instance_stats") > 0
    older = copy(whole, tmp_path / "run", method="dcl-plus", settings=settings)
    assert ensure(older, method="dcl-plus", instance_stats=0.0) is None
    with pytest.raises(ValueError, match="another run"):
        ensure(older, method="dcl-plus")


@pytest.mark.parametrize("asked", [{"epochs": 2}, {"jitter": 0.5}, {"method": "dcl-plus"}])
def test_ensure_refuses_another_run(whole: Path, asked: dict[str, Any]) -> None:
    before = rows_of(whole)
    with pytest.raises(ValueError, match="another run"):
        ensure(whole, **asked)
    assert rows_of(whole) == before


def test_ensure_refuses_another_stream(whole: Path) -> None:
    with pytest.raises(ValueError, match="another run: its stream seed is 0, not 1"):
        runs.ensure(whole, "dcl", STREAM.with_changes(seed=1), PLAN, "cpu", 0.0, **SMALL)


@pytest.mark.parametrize(("there", "asked"), [(1, 2), (1, 3), (2, 4)])
def test_ensure_accepts_a_run_that_was_tested_more_often(
    whole: Path, tmp_path: Path, there: int, asked: int
) -> None:
    plan = Run.open(whole).settings["plan"] | {"every": there}
    assert ensure(copy(whole, tmp_path / "run", plan=plan), replace(PLAN, every=asked)) is None


@pytest.mark.parametrize(("there", "asked"), [(2, 1), (2, 3), (4, 2)])
def test_ensure_refuses_a_run_that_was_tested_less_often(
    whole: Path, tmp_path: Path, there: int, asked: int
) -> None:
    plan = Run.open(whole).settings["plan"] | {"every": there}
    with pytest.raises(ValueError, match="another run"):
        ensure(copy(whole, tmp_path / "run", plan=plan), replace(PLAN, every=asked))


def test_ensure_refuses_a_run_with_another_plan(whole: Path) -> None:
    with pytest.raises(ValueError, match="another run: its setting plan"):
        ensure(whole, replace(PLAN, one_shot=(5,)))
