"""MLflow: one of its runs a run, in a database in the run's folder or on the server you name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from time import time
from typing import Any

from everlearn.disk import write_file
from everlearn.trackers.origin import Config, flat, logs
from everlearn.trackers.tracker import told

_AT_ONCE = 100  # as many parameters as MLflow takes in one call


class Mlflow:
    """A run of MLflow, at MLFLOW_TRACKING_URI or else in logs/mlflow."""

    def __init__(self, folder: Path, config: Config, first: int) -> None:
        """Begin a run of MLflow, or go on with the one of this folder."""
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException

        self._errors, place = (MlflowException, OSError), logs(folder)
        with told("mlflow", *self._errors):
            self._client = MlflowClient(_find_store(place / "mlflow"))
            path = place / "mlflow-id"
            if not path.exists():
                write_file(path, _begin(self._client, place, config).encode())
            self._id = path.read_text()
            self._client.update_run(self._id, status="RUNNING")

    def write(self, step: int, numbers: Mapping[str, float]) -> None:
        """Write numbers at a step; those written there before stay beside them."""
        from mlflow.entities import Metric

        now = round(1000 * time())  # milliseconds
        with told("mlflow", *self._errors):
            self._client.log_batch(
                self._id, [Metric(name, value, now, step) for name, value in numbers.items()]
            )

    def close(self, finished: bool) -> None:
        """Mark the run as finished, or as killed where it may go on."""
        with told("mlflow", *self._errors):
            self._client.set_terminated(self._id, "FINISHED" if finished else "KILLED")


def _find_store(place: Path) -> str:
    """Where MLflow keeps its runs: a database in a folder unless the user named another place."""
    named = os.environ.get("MLFLOW_TRACKING_URI")
    if named:
        return named
    place.mkdir(exist_ok=True)
    return f"sqlite:///{place / 'mlflow.db'}"


def _begin(client: Any, place: Path, config: Config) -> str:
    """Make a run with its parameters; return its id."""
    from mlflow.entities import Param

    made = client.create_run(_find_experiment(client, place), run_name=place.parent.name)
    params = [Param(name, str(value)) for name, value in flat(config).items()]
    for start in range(0, len(params), _AT_ONCE):
        client.log_batch(made.info.run_id, params=params[start : start + _AT_ONCE])
    return str(made.info.run_id)


def _find_experiment(client: Any, place: Path) -> str:
    name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "everlearn")
    found = client.get_experiment_by_name(name)
    if found is not None:
        return str(found.experiment_id)
    # A server decides itself where files go; without one they would go to the working folder.
    named = os.environ.get("MLFLOW_TRACKING_URI")
    files = None if named else (place / "mlflow" / "files").as_uri()
    return str(client.create_experiment(name, artifact_location=files))
