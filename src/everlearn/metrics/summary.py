"""The summary of one run: a line of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from everlearn.metrics.all_classes import all_classes, final_accuracy, mean_accuracy
from everlearn.metrics.cost import cost
from everlearn.metrics.gap import mean_stability_gap
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
    forward_transfer,
    learning_accuracy,
    stream_average,
)
from everlearn.metrics.windows import windowed_forgetting, windowed_plasticity
from everlearn.rows import OpenSetRow, Row, WithinTaskRow, of_kind

Summary = dict[str, float | int | None]
Source = TypeVar("Source")
Result = TypeVar("Result")


def summarise(rows: Iterable[Row], costs: Iterable[Row] = ()) -> Summary:
    """Compute all metrics of a run by name; None for what was not measured.

    Args:
        rows: of all kinds.
        costs: task rows, if they are kept apart from the others.
    """
    everything = [*rows, *costs]
    parts = (_matrix, _all_classes, _stability, _cost, _theta, _one_shot, _open_set)
    return {name: value for part in parts for name, value in part(everything).items()}


def _matrix(rows: list[Row]) -> Summary:
    matrix = table(rows)
    low, high = _bounds(matrix)
    return {
        "tasks": int(matrix.learned.max(initial=-1)) + 1,
        "average_accuracy": _or_none(average_accuracy, matrix),
        "accuracy_low": low,
        "accuracy_high": high,
        "learning_accuracy": _or_none(learning_accuracy, matrix),
        "forgetting": _or_none(forgetting, matrix),
        "backward_transfer": _or_none(backward_transfer, matrix),
        "forward_transfer": _or_none(forward_transfer, matrix),
        "stream_average": _or_none(stream_average, matrix),
        "within_task_accuracy": _or_none(average_accuracy, table(rows, WithinTaskRow)),
    }


def _bounds(matrix: Table) -> tuple[float | None, float | None]:
    """Return Wilson's interval of the last counts, pooled over the tasks learned."""
    points = pooled(matrix)
    if not len(points.total) or points.total[-1] == 0:
        return None, None
    low, high = wilson(points.correct[-1], points.total[-1])
    return float(low), float(high)


def _all_classes(rows: list[Row]) -> Summary:
    found = all_classes(rows)
    return {
        "all_classes_accuracy": _or_none(final_accuracy, found.accuracy),
        "all_classes_average": _or_none(mean_accuracy, found.accuracy),
        "seen_classes_accuracy": _or_none(final_accuracy, found.seen_accuracy),
        "seen_classes_average": _or_none(mean_accuracy, found.seen_accuracy),
    }


def _stability(rows: list[Row]) -> Summary:
    series = probes(rows)
    ends = ends_of_tasks(rows)
    return {
        "min_accuracy": _or_none(lambda s: min_accuracy(s, ends), series),
        "worst_case_accuracy": _or_none(lambda s: worst_case_accuracy(s, ends), series),
        "stability_gap": _or_none(mean_stability_gap, series),
        "windowed_forgetting_10": _or_none(lambda s: windowed_forgetting(s, 10), series),
        "windowed_plasticity_10": _or_none(lambda s: windowed_plasticity(s, 10), series),
        "learning_curve_area_10": _or_none(learning_curve_area, series),
    }


def _cost(rows: list[Row]) -> Summary:
    total = _or_none(cost, rows)
    return {
        "steps": total and total.steps,
        "seconds": total and total.seconds,
        "evaluation_seconds": total and total.evaluation_seconds,
        "images_per_second": total and total.images_per_second,
        "bytes": total and total.total_bytes,
        "peak_memory": total and total.peak_memory,
        "parameters": total and total.parameters,
    }


def _theta(rows: list[Row]) -> Summary:
    seen = theta_errors(rows)
    named = {
        "theta_rmse": seen.overall,
        "theta_linear_rmse": seen.linear,
        "theta_translation_rmse": seen.translation,
        "new_theta_rmse": theta_errors(rows, new=True).overall,
    }
    return {name: float(values[-1]) for name, values in named.items() if len(values)}


def _one_shot(rows: list[Row]) -> Summary:
    return {
        f"one_shot_{mode}_{factors}_{classes}": count.correct / count.total if count.total else None
        for (mode, factors, classes), count in one_shot(rows).items()
    }


def _open_set(rows: list[Row]) -> Summary:
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


def _or_none(metric: Callable[[Source], Result], source: Source) -> Result | None:
    try:
        return metric(source)
    except NotMeasuredError:
        return None
