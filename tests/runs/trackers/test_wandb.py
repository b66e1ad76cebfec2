"""Weights & Biases, offline: its files are written for real and read back record by record."""

from __future__ import annotations

import json
import os
import struct
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from everlearn.runs import launch as runs
from everlearn.runs import read_costs
from everlearn.runs.trackers import TrackerError, log_run

pytest.importorskip("wandb", reason="wandb is heavy and optional: install everlearn[wandb]")
from wandb.proto.wandb_internal_pb2 import Record

pytestmark = pytest.mark.integration
BLOCK = 2**15


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send nothing anywhere."""
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.delenv("WANDB_PROJECT", raising=False)


def records(path: Path) -> Iterator[Any]:
    """Read a file of W&B: LevelDB's log format after seven bytes of its own."""
    data = path.read_bytes()
    place = 7
    parts = b""
    while place + 7 <= len(data):
        if BLOCK - place % BLOCK < 7:
            place += BLOCK - place % BLOCK
            continue
        length, part = struct.unpack_from("<HB", data, place + 4)
        parts += data[place + 7 : place + 7 + length]
        place += 7 + length
        if part in (1, 4):  # complete, or the last part
            yield Record.FromString(parts)
            parts = b""


def sessions(folder: Path) -> list[list[Any]]:
    """The records of every session of a run, in order."""
    import wandb

    wandb.teardown()  # W&B's process writes the end of a file when it is torn down
    paths = sorted(folder.glob("logs/wandb/offline-run-*/*.wandb"), key=lambda p: p.stat().st_mtime)
    return [list(records(path)) for path in paths]


def history(session: list[Any], name: str) -> list[tuple[int, float]]:
    """The values of a metric by step."""
    out = []
    for record in session:
        values = {item.key or "/".join(item.nested_key): item for item in record.history.item}
        if name in values:
            out.append(
                (json.loads(values["_step"].value_json), json.loads(values[name].value_json))
            )
    return out


@pytest.fixture
def logged(call, toy, tmp_path) -> Path:
    """The folder of a run with a log."""
    assert call("run", *toy, "--log", "wandb", "--out", tmp_path / "run")[0] == 0
    return tmp_path / "run"


def test_a_complete_run_is_logged_and_no_row_changes(logged, plain):
    [session] = sessions(logged)
    assert history(session, "task/learned") == [
        (row["step"], row["learned"] + 1) for row in read_costs(logged)
    ]
    assert len(history(session, "probe/task_1")) > 1
    [run] = [record.run for record in session if record.HasField("run")]
    config = {item.key: json.loads(item.value_json) for item in run.config.update}
    assert (run.project, run.display_name) == ("everlearn", "run")
    assert (config["method"], config["stream"]["tasks"]) == ("er", 3)
    assert [r.exit.exit_code for r in session if r.HasField("exit")] == [0]
    assert (logged / "rows.jsonl").read_bytes() == (plain / "rows.jsonl").read_bytes()


def stop_after(rows: Iterator[dict], step: int) -> None:
    """Take rows until a step is passed, then stop."""
    for row in rows:
        if row["step"] > step:
            break
    rows.close()


def start(plain: Path, folder: Path) -> Iterator[dict]:
    kept = json.loads((plain / "settings.json").read_text())
    stream = runs.read_stream((plain / "stream.json").read_text())
    return runs.start(
        folder, "er", stream, runs.Plan(**kept["plan"]), "cpu", 0.0, **kept["settings"]
    )


def test_a_resumed_run_has_the_same_id(plain, tmp_path):
    stop_after(log_run(start(plain, tmp_path), tmp_path, ["wandb"]), 30)
    list(log_run(runs.resume(tmp_path), tmp_path, ["wandb"]))
    first, second = sessions(tmp_path)
    ids = [{r.run.run_id for r in session if r.HasField("run")} for session in (first, second)]
    assert ids[0] == ids[1] == {(tmp_path / "logs" / "wandb-id").read_text()}
    assert [step for step, _ in history(first, "task/learned")] == [25]
    assert [step for step, _ in history(second, "task/learned")] == [50, 75]
    assert [r.exit.exit_code for r in first if r.HasField("exit")] == [1]


def test_a_run_survives_the_death_of_w_and_b(plain, tmp_path, caplog):
    import wandb

    rows = log_run(start(plain, tmp_path), tmp_path, ["wandb"])
    next(rows)
    for child in _children():
        os.kill(child, 9)
    list(rows)
    with suppress(OSError):
        wandb.teardown()  # the next test gets a new one
    assert "wandb failed" in caplog.text
    assert (tmp_path / "rows.jsonl").read_bytes() == (plain / "rows.jsonl").read_bytes()


def _children() -> list[int]:
    """The processes of W&B that this one began."""
    result = subprocess.run(
        ["pgrep", "-P", str(os.getpid()), "wandb"], capture_output=True, text=True, check=True
    )
    return [int(line) for line in result.stdout.split()]


def test_a_missing_login_is_reported_before_any_learning(plain, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "online")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / "none"))
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    folder = tmp_path / "run"
    with pytest.raises(TrackerError, match=r"wandb failed: .*API key"):
        list(log_run(start(plain, folder), folder, ["wandb"]))
    assert not (folder / "rows.jsonl").exists()
