"""The summary of one run: a line of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from everlearn.metrics.all_classes import all_classes, final_accuracy, mean_accuracy
from everlearn.metrics.cost import cost
from everlearn.metrics.diagonal import forward_transfer, next_tasks
from everlearn.metrics.gap import first_step_share, regained, temporary_gap
from everlearn.metrics.matrix import Table, pooled, table
from everlearn.metrics.measured import NotMeasuredError
from everlearn.metrics.one_shot import one_shot
from everlearn.metrics.open_set import auroc, average_precision, fpr_at_tpr, oscr
from everlearn.metrics.paper_curve import paper_area, paper_curve
from everlearn.metrics.probes import ends_of_tasks, probes
from everlearn.metrics.proportion import wilson
from everlearn.metrics.stability import learning_curve_area, min_accuracy, worst_case_accuracy
from everlearn.metrics.theta import theta_errors
from everlearn.metrics.transfer import (
    average_accuracy,
    backward_transfer,
    forgetting,
    learning_accuracy,
    stream_average,
)
from everlearn.metrics.windows import windowed_forgetting, windowed_plasticity
from everlearn.rows import OpenSetRow, Row, WithinTaskRow, of_kind

Summary = dict[str, float | int | None]
# The same, with the reason instead of None.
Attempts = dict[str, float | int | NotMeasuredError | None]
Source = TypeVar("Source")
Result = TypeVar("Result")


def summarise(rows: Iterable[Row], costs: Iterable[Row] = ()) -> Summary:
    """Compute all metrics of a run by name; None for what was not measured.

    Args:
        rows: of all kinds.
        costs: task rows, if they are kept apart from the others.
    """
    attempts = _attempt_all([*rows, *costs])
    return {
        name: None if isinstance(value, NotMeasuredError) else value
        for name, value in attempts.items()
    }


def explain_missing(rows: Iterable[Row], costs: Iterable[Row] = ()) -> dict[str, str]:
    """Say for each metric that is None in the summary of the same rows why it is."""
    attempts = _attempt_all([*rows, *costs])
    return {
        name: str(value) for name, value in attempts.items() if isinstance(value, NotMeasuredError)
    }


def _attempt_all(rows: list[Row]) -> Attempts:
    parts = (_matrix, _all_classes, _stability, _cost, _theta, _one_shot, _open_set)
    return {name: value for part in parts for name, value in part(rows).items()}


def _matrix(rows: list[Row]) -> Attempts:
    matrix = table(rows)
    low, high = _bounds(matrix)
    return {
        "tasks": int(matrix.learned.max(initial=-1)) + 1,
        "average_accuracy": _attempt(average_accuracy, matrix),
        "accuracy_low": low,
        "accuracy_high": high,
        "learning_accuracy": _attempt(learning_accuracy, matrix),
        "forgetting": _attempt(forgetting, matrix),
        "backward_transfer": _attempt(backward_transfer, matrix),
        "forward_transfer": _attempt(forward_transfer, next_tasks(rows)),
        "stream_average": _attempt(stream_average, matrix),
        "within_task_accuracy": _attempt(average_accuracy, table(rows, WithinTaskRow)),
    }


def _bounds(matrix: Table) -> tuple[float | None, float | None]:
    """Return Wilson's interval of the last counts, pooled over the tasks learned."""
    points = pooled(matrix)
    if not len(points.total) or points.total[-1] == 0:
        return None, None
    low, high = wilson(points.correct[-1], points.total[-1])
    return float(low), float(high)


def _all_classes(rows: list[Row]) -> Attempts:
    found = all_classes(rows)
    return {
        "all_classes_accuracy": _attempt(final_accuracy, found.accuracy),
        "all_classes_average": _attempt(mean_accuracy, found.accuracy),
        "seen_classes_accuracy": _attempt(final_accuracy, found.seen_accuracy),
        "seen_classes_average": _attempt(mean_accuracy, found.seen_accuracy),
    }


def _stability(rows: list[Row]) -> Attempts:
    series = probes(rows)
    ends = ends_of_tasks(rows)
    learned = _attempt(learning_accuracy, table(rows)) if series else None
    accuracy = None if isinstance(learned, NotMeasuredError) else learned
    return {
        "min_accuracy": _attempt(lambda s: min_accuracy(s, ends), series),
        "worst_case_accuracy": _attempt(lambda s: worst_case_accuracy(s, ends), series),
        "stability_gap": _attempt(lambda s: temporary_gap(s, accuracy), series),
        "gap_regained": _attempt(regained, series),
        "gap_first_step": _attempt(first_step_share, series),
        "windowed_forgetting_10": _attempt(lambda s: windowed_forgetting(s, 10), series),
        "windowed_plasticity_10": _attempt(lambda s: windowed_plasticity(s, 10), series),
        "learning_curve_area_10": _attempt(learning_curve_area, series),
    }


def _cost(rows: list[Row]) -> Attempts:
    total = _attempt(cost, rows)
    if isinstance(total, NotMeasuredError):
        names = ("steps", "seconds", "evaluation_seconds", "images_per_second", "bytes")
        return dict.fromkeys((*names, "peak_memory", "parameters"), total)
    return {
        "steps": total.steps,
        "seconds": total.seconds,
        "evaluation_seconds": total.evaluation_seconds,
        "images_per_second": total.images_per_second,
        "bytes": total.total_bytes,
        "peak_memory": total.peak_memory,
        "parameters": total.parameters,
    }


def _theta(rows: list[Row]) -> Attempts:
    seen = theta_errors(rows)
    named = {
        "theta_rmse": seen.overall,
        "theta_linear_rmse": seen.linear,
        "theta_translation_rmse": seen.translation,
        "new_theta_rmse": theta_errors(rows, new=True).overall,
    }
    return {name: float(values[-1]) for name, values in named.items() if len(values)}


def _one_shot(rows: list[Row]) -> Attempts:
    return {
        f"one_shot_{mode}_{factors}_{classes}": count.correct / count.total if count.total else None
        for (mode, factors, classes), count in one_shot(rows).items()
    }


def _open_set(rows: list[Row]) -> Attempts:
    found = of_kind(rows, OpenSetRow)
    if not found:
        return {}
    known = found[-1]["known"]
    unknown = found[-1]["unknown"]
    return {
        "open_set_auroc": auroc(known, unknown),
        "open_set_average_precision": average_precision(known, unknown),
        "open_set_fpr_at_95_tpr": fpr_at_tpr(known, unknown),
        "open_set_oscr": oscr(known, unknown, found[-1]["correct"]),
        "open_set_paper_area": paper_area(paper_curve(known, unknown)),
    }


def _attempt(metric: Callable[[Source], Result], source: Source) -> Result | NotMeasuredError:
    """Return a metric, or the error that says why it cannot be computed."""
    try:
        return metric(source)
    except NotMeasuredError as error:
        return error
