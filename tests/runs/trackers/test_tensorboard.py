"""TensorBoard: event files are written for real and read back with TensorBoard's own reader."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import closing
from itertools import takewhile
from pathlib import Path

import pytest

from everlearn.runs import launch as runs
from everlearn.runs import read_costs, read_rows
from everlearn.runs.trackers import log_run

pytest.importorskip("tensorboard", reason="install everlearn[tensorboard]")
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import metadata

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parent.parent.parent
TIMES = ("task/seconds", "task/evaluation_seconds", "task/images_per_second", "task/peak_memory")


def read(folder: Path) -> EventAccumulator:
    return EventAccumulator(str(folder / "logs" / "tensorboard")).Reload()


def points(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Every metric in a run's log except times, by step."""
    log = read(folder)
    tags = [tag for tag in log.Tags()["scalars"] if tag not in TIMES]
    return {tag: [(event.step, event.value) for event in log.Scalars(tag)] for tag in tags}


@pytest.fixture(scope="module")
def logged(call, toy, tmp_path_factory) -> Path:
    """The folder of a run with a log."""
    folder = tmp_path_factory.mktemp("runs") / "logged"
    assert call("run", *toy, "--log", "tensorboard", "--out", folder)[0] == 0
    return folder


def test_a_log_changes_no_row(plain, logged):
    for name in ("rows.jsonl", "stream.json", "settings.json"):
        assert (logged / name).read_bytes() == (plain / name).read_bytes()


def test_tasks_are_logged_at_their_last_step(logged):
    steps = [(row["step"], row["learned"] + 1) for row in read_costs(logged)]
    assert points(logged)["task/learned"] == steps


def test_probes_are_logged_at_their_step(logged):
    expected = [
        (row["step"], pytest.approx(row["correct"] / row["total"]))
        for row in read_rows(logged)
        if row["kind"] == "probe" and row["tested"] == 1
    ]
    assert points(logged)["probe/task_1"] == expected
    assert len(expected) > 1


def test_the_last_summary_is_that_of_the_run(logged):
    done = json.loads((logged / "done.json").read_text())
    last = {tag: events[-1][1] for tag, events in points(logged).items() if "summary/" in tag}
    assert {"summary/average_accuracy", "summary/forgetting"} <= set(last)
    assert last == {tag: pytest.approx(done[tag.removeprefix("summary/")]) for tag in last}


def test_method_settings_stream_and_provenance_are_hyper_parameters(logged):
    tag = metadata.SESSION_START_INFO_TAG
    content = read(logged).SummaryMetadata(tag).plugin_data.content
    found = metadata.parse_session_start_info_plugin_data(content).hparams
    assert found["method"].string_value == "er"
    assert found["stream/tasks"].number_value == 3
    assert found["plan/within_task"].bool_value
    assert found["settings/final_learning_rate"].string_value == "null"
    assert "provenance/commit" in found or "provenance/date" in found


def is_early(row: dict) -> bool:
    """Whether a row comes before the last probe of the second task."""
    return row["step"] < 50


def test_a_resumed_run_has_the_log_of_an_uninterrupted_one(logged, tmp_path):
    kept = json.loads((logged / "settings.json").read_text())
    folder = tmp_path / "run"
    plan = runs.Plan(**kept["plan"])
    stream = runs.read_stream((logged / "stream.json").read_text())
    with closing(runs.start(folder, "er", stream, plan, "cpu", 0.0, **kept["settings"])) as rows:
        seen = list(takewhile(is_early, log_run(rows, folder, ["tensorboard"])))
    assert {row["learned"] for row in seen if row["kind"] == "probe"} == {-1, 0, 1}
    assert points(folder) != points(logged)
    list(log_run(runs.resume(folder), folder, ["tensorboard"]))
    assert points(folder) == points(logged)


@pytest.mark.slow
def test_a_killed_run_resumes_its_log(call, toy, logged, tmp_path):
    arguments = ("run", *toy, "--log", "tensorboard", "--out", str(tmp_path / "run"))
    process = subprocess.Popen(
        [sys.executable, "-m", "everlearn", *arguments],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
    )
    with process:
        assert "task 1 of 3" in process.stderr.readline()
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert call("resume", tmp_path / "run", "--log", "tensorboard")[0] == 0
    assert points(tmp_path / "run") == points(logged)
