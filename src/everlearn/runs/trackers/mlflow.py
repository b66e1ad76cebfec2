"""MLflow: one of its runs for each run, in a database in the run's folder or on a server."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from time import time
from typing import Any

from everlearn.core.files import write_file
from everlearn.runs.trackers.provenance import Config, flatten, log_folder
from everlearn.runs.trackers.tracker import tracker_errors

_MAX_PARAMS = 100  # that MLflow takes in one call


class Mlflow:
    """A run of MLflow, at MLFLOW_TRACKING_URI or else in logs/mlflow."""

    def __init__(self, folder: Path, config: Config, first_step: int) -> None:
        """Begin a run of MLflow, or resume the one of this folder."""
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException

        self._errors = (MlflowException, OSError)
        logs = log_folder(folder)
        with tracker_errors("mlflow", *self._errors):
            self._client = MlflowClient(_find_store(logs / "mlflow"))
            path = logs / "mlflow-id"
            if not path.exists():
                write_file(path, _begin(self._client, logs, config).encode())
            self._id = path.read_text()
            self._client.update_run(self._id, status="RUNNING")

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write metrics at a step; those written there before stay beside them."""
        from mlflow.entities import Metric

        now = round(1000 * time())  # milliseconds
        with tracker_errors("mlflow", *self._errors):
            self._client.log_batch(
                self._id, [Metric(name, value, now, step) for name, value in metrics.items()]
            )

    def close(self, finished: bool) -> None:
        """Mark the run as finished, or as killed if it may be resumed."""
        with tracker_errors("mlflow", *self._errors):
            self._client.set_terminated(self._id, "FINISHED" if finished else "KILLED")


def _find_store(folder: Path) -> str:
    """Return the address of MLflow's store: a database in a folder unless the user named another."""
    address = os.environ.get("MLFLOW_TRACKING_URI")
    if address:
        return address
    folder.mkdir(exist_ok=True)
    return f"sqlite:///{folder / 'mlflow.db'}"


def _begin(client: Any, logs: Path, config: Config) -> str:
    """Make a run with its parameters; return its id."""
    from mlflow.entities import Param

    run = client.create_run(_find_experiment(client, logs), run_name=logs.parent.name)
    params = [Param(name, str(value)) for name, value in flatten(config).items()]
    for start in range(0, len(params), _MAX_PARAMS):
        client.log_batch(run.info.run_id, params=params[start : start + _MAX_PARAMS])
    return str(run.info.run_id)


def _find_experiment(client: Any, logs: Path) -> str:
    name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "everlearn")
    experiment = client.get_experiment_by_name(name)
    if experiment is not None:
        return str(experiment.experiment_id)
    # A server decides where files go; without one they would go to the working directory.
    address = os.environ.get("MLFLOW_TRACKING_URI")
    files = None if address else (logs / "mlflow" / "files").as_uri()
    return str(client.create_experiment(name, artifact_location=files))
