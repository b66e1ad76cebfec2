"""Numbers and figures of groups of runs, which experiments share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from everlearn.experiments.framework.rule import Values
from everlearn.experiments.framework.shared_trials import FIRST_REPORTED_SEED
from everlearn.experiments.framework.trial import Trial
from everlearn.metrics import curve, mean_or_none, share, wilson
from everlearn.report import Group
from everlearn.report.charts import Bar, draw_bars, draw_lines
from everlearn.report.charts.accuracy_lines import Line, accuracy_lines
from everlearn.report.experiment import Figure
from everlearn.report.tables.groups import accuracy_by_tasks
from everlearn.report.tables.numbers import MISSING, decimal


def values_after(group: Group, tasks: int) -> dict[int, float]:
    """Return the accuracy on all tasks so far after a number of tasks, by seed, where it was tested."""
    values = {run.seed: accuracy_by_tasks(run).get(tasks) for run in group.runs}
    return {seed: value for seed, value in values.items() if value is not None}


def accuracy_after(group: Group, tasks: int) -> float | None:
    """Return the accuracy on all tasks so far after a number of tasks, mean over the seeds tested then."""
    return mean_or_none(values_after(group, tasks).values())


def on_shared_seeds(groups: Sequence[Group]) -> list[Group]:
    """Return groups with the runs of the seeds that all have: means over different seeds do not compare."""
    shared = set.intersection(*(set(group.seeds) for group in groups)) if groups else set()
    kept = [
        group._replace(runs=[run for run in group.runs if run.seed in shared]) for group in groups
    ]
    return [group for group in kept if group.runs]


def name_early_seeds(group: Group) -> str:
    """Return the label of a group, with its seeds where they are those of development."""
    early = [seed for seed in group.seeds if seed < FIRST_REPORTED_SEED]
    return f"{group.label} (seed {', '.join(map(str, early))})" if early else group.label


def final_values(group: Group) -> dict[int, float]:
    """Return the accuracy on all tasks at the end, by seed."""
    return group.values("average_accuracy")


def final_accuracy(group: Group) -> float:
    """Return the accuracy on all tasks at the end, mean over seeds."""
    return float(np.mean(list(final_values(group).values())))


def values_by_title(trials: Iterable[Trial], values: Mapping[str, Values]) -> dict[str, Values]:
    """Return the values of each trial, by seed, in the order of the trials; none where it has no rows."""
    return {trial.title: values.get(trial.title, {}) for trial in trials}


def final_pooled_accuracy(group: Group) -> float:
    """Return the fraction of all test images classified correctly at the end, mean over seeds."""
    curves = [curve(run.rows) for run in group.runs]
    return float(np.mean([share(c.correct[-1], c.total[-1]) for c in curves]))


def summary_cell(group: Group, name: str, digits: int = 3) -> str:
    """Format the mean of a number of the summary for a table."""
    return format_number(group.mean(name), digits)


def format_mean_std(values: Sequence[float], digits: int) -> str:
    """Format a mean over seeds and, of several seeds, their standard deviation."""
    if not values:
        return MISSING
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
    deviation = "" if spread is None else f" ± {decimal(spread, digits)}"
    return f"{decimal(float(np.mean(values)), digits)}{deviation}"


def format_number(value: float | None, digits: int = 3) -> str:
    """Format a number for a table; None becomes a dash."""
    return MISSING if value is None else decimal(value, digits)


def bar_figures(
    groups: Sequence[Group], name: str, figure: str, x: str, caption: str
) -> list[Figure]:
    """Draw a number of the summary as one bar per group; no figure where it was not measured."""
    values = {group.label: group.mean(name) for group in groups}
    bars = [
        Bar(group.label, group.method, value, value, value)
        for group in groups
        if (value := values[group.label]) is not None
    ]
    return [Figure(draw_bars(bars, figure, x, f"{x}, by method"), caption)] if bars else []


def line_figures(
    lines: Sequence[Line], name: str, x: str, y: str, caption: str, top: float | None = 1.0
) -> list[Figure]:
    """Draw lines; no figure where there are none."""
    description = f"{y} against {x}"
    return [Figure(draw_lines(lines, name, x, y, description, top=top), caption)] if lines else []


def accuracy_figures(groups: Sequence[Group], name: str, caption: str) -> list[Figure]:
    """Draw accuracy on all tasks so far against tasks learned; no figure where there are no runs."""
    return line_figures(accuracy_lines(groups), name, "tasks learned", "accuracy", caption)


def wilson_line(
    label: str, method: str, x: Sequence[float], counts: Sequence[tuple[int, int]]
) -> Line:
    """Return a line through fractions of counts (correct, total), with Wilson's intervals."""
    correct, total = np.array(counts, np.int64).T
    low, high = wilson(correct, total)
    return Line(label, method, np.array(x), share(correct, total), np.array(low), np.array(high))
