"""The main table: accuracy after milestones with intervals, learning, forgetting, cost and supervision."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from everlearn.metrics import LEARNED, MIN_SEEDS, compare_shared, learned_its_tasks
from everlearn.report.tables import numbers
from everlearn.report.tables.groups import Group, accuracy_by_tasks
from everlearn.report.tables.intervals import interval_over_seeds
from everlearn.report.tables.table import Column, Table, mean_cells

MILESTONES = (10, 50, 100, 200, 500)  # tasks
_COLUMNS = (
    Column("learning_accuracy", "learning accuracy", numbers.fraction),
    Column("forgetting", "forgetting", numbers.fraction),
    Column("forward_transfer", "forward transfer", numbers.signed),
)
_COSTS = (
    Column("bytes", "stored", numbers.byte_size),
    Column("seconds", "training", numbers.duration),
)
_SHORT = {
    "task boundaries": "boundaries",
    "true affine maps": "true maps",
    "one exemplar per class": "exemplars",
    "pre-training on other images": "pre-training",
    "all images of all tasks so far": "all images",
}
_NOTE = (
    "After N tasks: accuracy over the N tasks learned by then, mean over seeds with Student's 95 % "
    "interval, or with the number of seeds where there are fewer than three. Learning accuracy: on each "
    "task right after learning it. Supervision: what a method is given; boundaries: when a task ends."
)
_UNLEARNED_NOTE = (
    f"Methods with a learning accuracy below {LEARNED}: what they did not learn they cannot forget, so "
    "they are no baselines. One that is trained after several tasks at once is judged by its accuracy on "
    "all tasks at the end."
)
_NONE: Mapping[str, float] = MappingProxyType({})
_NO_REASONS: Mapping[str, str] = MappingProxyType({})


def protocol_table(
    groups: Sequence[Group],
    supervision: Mapping[str, str],
    gaps: Mapping[str, float] = _NONE,
    milestones: Sequence[int] = MILESTONES,
    whole_runs: Sequence[Group] = (),
) -> Table:
    """Make one row per group that learned its tasks or was not tested for it.

    Args:
        supervision: what each method is given, by name, as its record in METHODS says.
        gaps: stability gaps by label; a dash for other groups.
        milestones: numbers of tasks after which accuracy is shown.
        whole_runs: longer runs of the same groups, for milestones that `groups` do not reach.
    """
    longer = {group.label: group for group in whole_runs}
    head = [
        "method",
        *(f"after {tasks:,}" for tasks in milestones),
        *(column.title for column in _COLUMNS),
        "stability gap",
        *(column.title for column in _COSTS),
        "supervision",
    ]
    rows = [
        [
            group.label,
            *_milestone_cells(group, longer.get(group.label, group), milestones),
            *mean_cells(group, _COLUMNS),
            _gap_cell(gaps.get(group.label)),
            *mean_cells(group, _COSTS),
            supervision_words(group, supervision),
        ]
        for group in groups
        if not did_not_learn(group)
    ]
    return Table("All methods", head, rows, _NOTE)


def unlearned_table(
    groups: Sequence[Group],
    supervision: Mapping[str, str],
    reasons: Mapping[str, str] = _NO_REASONS,
) -> Table:
    """Make one row per group that did not learn its tasks.

    Args:
        supervision: as in `protocol_table`.
        reasons: why a group did not learn, by label.
    """
    head = ["method", "learning accuracy", "accuracy at the end", "supervision", "reason"]
    rows = [
        [
            group.label,
            format_over_seeds(group, "learning_accuracy"),
            format_over_seeds(group, "average_accuracy"),
            supervision_words(group, supervision),
            reasons.get(group.label, "not known"),
        ]
        for group in groups
        if did_not_learn(group)
    ]
    return Table("Did not learn", head, rows, _UNLEARNED_NOTE)


def did_not_learn(group: Group) -> bool:
    """Return whether the mean learning accuracy was measured and is below 0.9.

    A method that is trained after several tasks has none. It is judged by its accuracy on all tasks at the
    end, when it has just been trained on them; this is stricter.
    """
    together = any(run.trained_every > 1 for run in group.runs)
    accuracy = group.mean("average_accuracy") if together else group.mean("learning_accuracy")
    return learned_its_tasks(accuracy) is False


def supervision_words(group: Group, supervision: Mapping[str, str]) -> str:
    """Return in short words what a group was given: by its method, and by weights that it started from."""
    given = re.split("[,;] ", supervision[group.method])
    phrases = [_SHORT.get(phrase, phrase) for phrase in given]
    pretrained = any(run.method_settings.get("weights") for run in group.runs)
    if pretrained and "pre-training" not in phrases:
        phrases.append("pre-training")
    return ", ".join(phrases)


def format_seeds(values: Sequence[float]) -> str:
    """Format a mean accuracy with its interval over seeds: "0.950 (0.941 to 0.959)", "0.950 (1 seed)"."""
    if not values:
        return numbers.MISSING
    mean, low, high = (float(end[0]) for end in interval_over_seeds(np.array(values)[:, None]))
    if len(values) < MIN_SEEDS:
        return f"{numbers.fraction(mean)} ({numbers.count(len(values), 'seed')})"
    ends = (numbers.fraction(end) for end in (max(low, 0.0), min(high, 1.0)))
    return f"{numbers.fraction(mean)} ({' to '.join(ends)})"


def format_over_seeds(group: Group, name: str) -> str:
    """Format a fraction of the summary as `format_seeds` does, over the seeds that measured it."""
    return format_seeds(list(group.values(name).values()))


def format_difference(first: Mapping[int, float], second: Mapping[int, float]) -> str:
    """Format first minus second, paired over the seeds of both: "+0.086 (+0.002 to +0.169)"."""
    shared = sorted(first.keys() & second.keys())
    if not shared:
        return numbers.MISSING
    found = compare_shared(first, second)
    if found is None:
        mean = statistics.mean(first[seed] - second[seed] for seed in shared)
        return f"{numbers.signed(mean)} ({numbers.count(len(shared), 'seed')})"
    spread = found.spread
    ends = (numbers.signed(end) for end in (spread.low, spread.high))
    return f"{numbers.signed(spread.mean)} ({' to '.join(ends)})"


def _milestone_cells(group: Group, longer: Group, milestones: Sequence[int]) -> list[str]:
    """Format the accuracies after milestones: of a group, or of its longer runs where it has none."""
    runs = [accuracy_by_tasks(run) for run in group.runs]
    long_runs = [accuracy_by_tasks(run) for run in longer.runs]
    found = [
        [run[tasks] for run in runs if tasks in run]
        or [run[tasks] for run in long_runs if tasks in run]
        for tasks in milestones
    ]
    return [format_seeds(values) for values in found]


def _gap_cell(gap: float | None) -> str:
    return numbers.MISSING if gap is None else numbers.signed(gap)
