"""MLflow: a database in the run's folder is written for real and read back with MLflow's client."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from everlearn.runs import launch as runs
from everlearn.runs import read_costs
from everlearn.runs.trackers import TrackerError, log_run

pytest.importorskip("mlflow", reason="mlflow is heavy and optional: install everlearn[mlflow]")
from mlflow import MlflowClient

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write to the run's folder."""
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME"):
        monkeypatch.delenv(name, raising=False)


def read(folder: Path) -> tuple[Any, Any]:
    """A client of a run's log, and the one run there is."""
    client = MlflowClient(f"sqlite:///{folder / 'logs' / 'mlflow' / 'mlflow.db'}")
    [run] = client.search_runs([client.get_experiment_by_name("everlearn").experiment_id])
    return client, run


def history(folder: Path, name: str) -> list[tuple[int, float]]:
    client, run = read(folder)
    return sorted((m.step, m.value) for m in client.get_metric_history(run.info.run_id, name))


def test_a_complete_run_is_logged_and_no_row_changes(call, toy, plain, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "run"
    assert call("run", *toy, "--log", "mlflow", "--out", folder)[0] == 0
    assert history(folder, "task/learned") == [
        (row["step"], row["learned"] + 1) for row in read_costs(folder)
    ]
    _, run = read(folder)
    assert (run.info.run_name, run.info.status) == ("run", "FINISHED")
    assert run.data.params["method"] == "er"
    assert run.data.params["stream/tasks"] == "3"
    done = json.loads((folder / "done.json").read_text())
    assert run.data.metrics["summary/forgetting"] == done["forgetting"]
    assert (folder / "rows.jsonl").read_bytes() == (plain / "rows.jsonl").read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_resumed_run_is_one_run(plain, tmp_path):
    kept = json.loads((plain / "settings.json").read_text())
    folder = tmp_path / "run"
    plan = runs.Plan(**kept["plan"])
    stream = runs.read_stream((plain / "stream.json").read_text())
    started = runs.start(folder, "er", stream, plan, "cpu", 0.0, **kept["settings"])
    rows = log_run(started, folder, ["mlflow"])
    while next(rows)["step"] <= 40:  # a probe of the second task is written
        pass
    rows.close()
    started.close()
    assert read(folder)[1].info.status == "KILLED"
    list(log_run(runs.resume(folder), folder, ["mlflow"]))
    assert read(folder)[1].info.status == "FINISHED"
    assert [step for step, _ in history(folder, "task/learned")] == [25, 50, 75]
    twice = history(folder, "probe/task_1")
    # The repeated probe stands beside the first and is equal to it.
    assert [step for step, _ in twice].count(30) == 2
    assert len(dict(twice)) == len(set(twice))


def test_a_run_of_another_server_is_refused_before_any_learning(tmp_path, plain, monkeypatch):
    kept = json.loads((plain / "settings.json").read_text())
    folder = tmp_path / "run"
    stream = runs.read_stream((plain / "stream.json").read_text())
    rows = runs.start(folder, "er", stream, None, "cpu", 0.0, **kept["settings"])
    (folder / "logs").mkdir()
    (folder / "logs" / "mlflow-id").write_text("0" * 32)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'other.db'}")
    with pytest.raises(TrackerError, match=r"mlflow failed: .*not found"):
        list(log_run(rows, folder, ["mlflow"]))
    assert not (folder / "rows.jsonl").exists()
