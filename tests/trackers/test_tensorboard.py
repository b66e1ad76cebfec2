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

from everlearn import runs
from everlearn.results import read_costs, read_rows
from everlearn.trackers import log_run

pytest.importorskip("tensorboard", reason="install everlearn[tensorboard]")
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import metadata

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
TIMES = ("task/seconds", "task/evaluation_seconds", "task/images_per_second", "task/peak_memory")


def read(folder: Path) -> EventAccumulator:
    return EventAccumulator(str(folder / "logs" / "tensorboard")).Reload()


def points(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Every number that a run's log holds, but times, by step."""
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


def test_tasks_stand_at_their_last_step(logged):
    steps = [(row["step"], row["learned"] + 1) for row in read_costs(logged)]
    assert points(logged)["task/learned"] == steps


def test_probes_stand_at_theirs(logged):
    wanted = [
        (row["step"], pytest.approx(row["right"] / row["total"]))
        for row in read_rows(logged)
        if row["kind"] == "probe" and row["tested"] == 1
    ]
    assert points(logged)["probe/task_1"] == wanted
    assert len(wanted) > 1


def test_the_last_summary_is_that_of_the_run(logged):
    done = json.loads((logged / "done.json").read_text())
    last = {tag: events[-1][1] for tag, events in points(logged).items() if "summary/" in tag}
    assert {"summary/average_accuracy", "summary/forgetting"} <= set(last)
    assert last == {tag: pytest.approx(done[tag.removeprefix("summary/")]) for tag in last}


def test_method_settings_stream_and_provenance_are_hyper_parameters(logged):
    tag = metadata.SESSION_START_INFO_TAG
    about = read(logged).SummaryMetadata(tag).plugin_data.content
    found = metadata.parse_session_start_info_plugin_data(about).hparams
    assert found["method"].string_value == "er"
    assert found["stream/tasks"].number_value == 3
    assert found["plan/within"].bool_value
    assert found["settings/final_rate"].string_value == "null"
    assert "provenance/commit" in found or "provenance/date" in found


def is_early(row: dict) -> bool:
    """Whether a row comes before the last probe of the second task."""
    return row["step"] < 50


def test_a_run_that_goes_on_has_the_log_of_one_that_was_never_stopped(logged, tmp_path):
    kept, folder = json.loads((logged / "settings.json").read_text()), tmp_path / "run"
    plan, stream = runs.Plan(**kept["plan"]), runs.read_stream((logged / "stream.json").read_text())
    with closing(runs.start(folder, "er", stream, plan, "cpu", 0.0, **kept["settings"])) as some:
        seen = list(takewhile(is_early, log_run(some, folder, ["tensorboard"])))
    assert {row["learned"] for row in seen if row["kind"] == "probe"} == {-1, 0, 1}
    assert points(folder) != points(logged)
    list(log_run(runs.resume(folder), folder, ["tensorboard"]))
    assert points(folder) == points(logged)


@pytest.mark.slow
def test_a_killed_run_goes_on_in_its_log(call, toy, logged, tmp_path):
    words = ("run", *toy, "--log", "tensorboard", "--out", str(tmp_path / "run"))
    process = subprocess.Popen(
        [sys.executable, "-m", "everlearn", *words],
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
