"""Metrics of the task matrix: accuracy, forgetting, transfer (Lopez-Paz and Ranzato 2017).

If only some entries were measured, the tasks with the needed entries count.
"""

from __future__ import annotations

import numpy as np

from everlearn.metrics.matrix import Table, pooled
from everlearn.metrics.measured import Floats, NotMeasuredError, mean_of_measured


def average_accuracy(table: Table) -> float:
    """Average the last accuracies of all tasks learned: mean_i R_Ti."""
    last = last_learned(table)
    final = _after(table, last)[table.tested <= last]
    return mean_of_measured(final, f"a task's accuracy after task {last}")


def learning_accuracy(table: Table) -> float:
    """Average the accuracies of the tasks right after learning them: mean_i R_ii."""
    return mean_of_measured(_relative(table, 0), "a task's accuracy right after learning it")


def stream_average(table: Table) -> float:
    """Average over the stream of the average over the tasks so far: mean_t mean_{i<=t} R_ti."""
    return mean_of_measured(pooled(table).accuracy, "an accuracy on a task learned before")


def backward_transfer(table: Table) -> float:
    """Average the gains of earlier tasks from later ones: mean_{i<T} (R_Ti - R_ii)."""
    last = last_learned(table)
    gain = _after(table, last) - _relative(table, 0)
    needed = f"an earlier task's accuracy both right after learning it and after task {last}"
    return mean_of_measured(gain[table.tested < last], needed)


def forward_transfer(table: Table) -> float:
    """Average the gains of the next task from earlier ones: mean_{i>=2} (R_{i-1,i} - b_i)."""
    gain = _relative(table, 1) - _after(table, -1)
    needed = "a task's accuracy both before any learning and right before learning it"
    return mean_of_measured(gain[table.tested >= 1], needed)


def forgetting(table: Table, include_last: bool = False) -> float:
    """Average the falls from the best accuracy to the last one: mean_{i<T} (max_t R_ti - R_Ti).

    Args:
        include_last: let t reach T, so that no fall is negative; else t < T.
    """
    last = last_learned(table)
    final = _after(table, last)
    best = np.maximum(_best_before(table, last), final if include_last else -np.inf)
    needed = f"an earlier task's accuracy both after learning it and after task {last}"
    return mean_of_measured(best - final, needed)


def last_learned(table: Table) -> int:
    """Return the last task after which something was tested."""
    if not np.any(table.learned >= 0):
        raise NotMeasuredError("no test row was made after learning a task; test after one")
    return int(table.learned[-1])


def _after(table: Table, learned: int) -> Floats:
    """Return the accuracies (T,) after learning one task, NaN where not measured."""
    found = table.accuracy[table.learned == learned]
    return found[0] if len(found) else np.full(len(table.tested), np.nan)


def _relative(table: Table, before: int) -> Floats:
    """Return the accuracies (T,) after learning the task itself, or `before` tasks earlier."""
    values = np.full(len(table.tested), np.nan)
    moments = table.learned + before
    _, rows, columns = np.intersect1d(moments, table.tested, return_indices=True)
    values[columns] = table.accuracy[rows, columns]
    return values


def _best_before(table: Table, last: int) -> Floats:
    """Return the best accuracies (T,) before the last task, NaN for tasks not measured since learned."""
    earlier = ((table.learned >= 0) & (table.learned < last))[:, None] & (table.total > 0)
    best = np.where(earlier, table.accuracy, -1.0).max(axis=0, initial=-1.0)
    return np.where((earlier & table.seen).any(axis=0), best, np.nan)
