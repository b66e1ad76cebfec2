"""Which numbers of a run are logged: those of `metrics`, as soon as the rows for them are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan

from everlearn.metrics import Row, Table, cost, pooled, share, summarise, table

_FINALS = ("one-shot", "open-set")


def is_exam(row: Row) -> bool:
    """Whether later numbers may need a row: probes stand for themselves, and so do costs."""
    return row["kind"] not in ("probe", "task")


def measure(row: Row, seen: Sequence[Row]) -> dict[str, float]:
    """Turn a row into numbers by name: a probe into one, the row of a task into all of that task.

    Args:
        seen: the rows of exams so far, but probes.
    """
    if row["kind"] == "probe":
        return _known({f"probe/task_{row['tested']}": float(share(row["right"], row["total"]))})
    return _known({**_task(row), **_exams(row, seen)}) if row["kind"] == "task" else {}


def _task(row: Row) -> dict[str, float | None]:
    spent = cost([row])
    return {
        "task/learned": row["learned"] + 1,
        "task/loss": row["loss"],
        "task/seconds": spent.seconds,
        "task/evaluation_seconds": spent.evaluation_seconds,
        "task/images_per_second": spent.images_per_second,
        "task/stored_bytes": spent.total_bytes,
        "task/peak_memory": spent.peak_memory,
        **{f"notes/{name}": value for name, value in row.get("notes", {}).items()},
    }


def _exams(row: Row, seen: Sequence[Row]) -> dict[str, float | None]:
    """Accuracies and the summary so far, where the learner was tested after the task."""
    learned = row["learned"]
    if not any(r["kind"] == "test" and r["learned"] == learned for r in reversed(seen)):
        return {}
    matrix = table(seen)
    points = pooled(matrix)
    # One shot and open set are measured now and then: an old number must not look like a new one.
    now = [r for r in seen if r["kind"] not in _FINALS or r["learned"] == learned]
    return {
        "accuracy/pooled": float(share(points.right[-1], points.total[-1])),
        "accuracy/first_task": _last_accuracy(matrix, 0),
        "accuracy/current_task": _last_accuracy(matrix, learned),
        **{f"summary/{name}": value for name, value in summarise(now).items()},
    }


def _last_accuracy(matrix: Table, tested: int) -> float | None:
    found = matrix.accuracy[-1, matrix.tested == tested]
    return float(found[0]) if len(found) else None


def _known(numbers: Mapping[str, float | None]) -> dict[str, float]:
    """Leave out what was not measured."""
    return {name: float(n) for name, n in numbers.items() if n is not None and not isnan(n)}
