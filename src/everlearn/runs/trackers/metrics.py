"""The metrics of a run that are logged, as soon as their rows are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan

from everlearn.metrics import Table, cost, pooled, share, summarise, table
from everlearn.rows import Row, TaskRow

_FINAL_KINDS = ("one-shot", "open-set")


def is_needed_later(row: Row) -> bool:
    """Whether later metrics may need a row; those of probes and costs do not."""
    return row["kind"] not in ("probe", "task")


def metrics_of(row: Row, earlier: Sequence[Row]) -> dict[str, float]:
    """Return the metrics of a row by name: one of a probe, all of a task for its last row.

    Args:
        earlier: the rows so far that are needed later.
    """
    if row["kind"] == "probe":
        accuracy = float(share(row["correct"], row["total"]))
        return _measured({f"probe/task_{row['tested']}": accuracy})
    if row["kind"] == "task":
        return _measured({**_costs(row), **_accuracies(row["learned"], earlier)})
    return {}


def _costs(row: TaskRow) -> dict[str, float | None]:
    costs = cost([row])
    return {
        "task/learned": row["learned"] + 1,
        "task/loss": row["loss"],
        "task/seconds": costs.seconds,
        "task/evaluation_seconds": costs.evaluation_seconds,
        "task/images_per_second": costs.images_per_second,
        "task/stored_bytes": costs.total_bytes,
        "task/peak_memory": costs.peak_memory,
        **{f"diagnostics/{name}": value for name, value in row.get("diagnostics", {}).items()},
    }


def _accuracies(learned: int, earlier: Sequence[Row]) -> dict[str, float | None]:
    """Return accuracies and the summary so far, if the learner was tested after the task."""
    if not any(row["kind"] == "test" and row["learned"] == learned for row in reversed(earlier)):
        return {}
    matrix = table(earlier)
    points = pooled(matrix)
    # One-shot and open-set are measured rarely: an old number must not look like a new one.
    current = [
        row for row in earlier if row["kind"] not in _FINAL_KINDS or row["learned"] == learned
    ]
    return {
        "accuracy/pooled": float(share(points.correct[-1], points.total[-1])),
        "accuracy/first_task": _last_accuracy(matrix, 0),
        "accuracy/current_task": _last_accuracy(matrix, learned),
        **{f"summary/{name}": value for name, value in summarise(current).items()},
    }


def _last_accuracy(matrix: Table, tested: int) -> float | None:
    found = matrix.accuracy[-1, matrix.tested == tested]
    return float(found[0]) if len(found) else None


def _measured(metrics: Mapping[str, float | None]) -> dict[str, float]:
    """Leave out what was not measured."""
    return {name: float(n) for name, n in metrics.items() if n is not None and not isnan(n)}
