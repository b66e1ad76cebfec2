"""Metrics of the task matrix: accuracy, forgetting, backward transfer (Lopez-Paz and Ranzato 2017).

Learning accuracy, backward transfer and forgetting are averages over the same tasks: those tested at the
end. Each of them must have been tested right after it was learned, too. Averages over the few tasks for
which that happens to be known are refused: a task that was never tested while it was known seems to have
had nothing to forget, so that the worst forgetter comes out best.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everlearn.metrics.matrix import Table, pooled
from everlearn.metrics.measured import Floats, NotMeasuredError, mean_of_measured

LEARNED = 0.9


def average_accuracy(table: Table) -> float:
    """Average the last accuracies of all tasks learned: mean_i R_Ti."""
    last = last_learned(table)
    final = _after(table, last)[table.tested <= last]
    return mean_of_measured(final, f"a task's accuracy after task {last}")


def learning_accuracy(table: Table) -> float:
    """Average the accuracies of the tasks right after learning them: mean_i R_ii."""
    compared = _compare(table)
    return float(compared.just_learned[compared.tasks].mean())


def learned_its_tasks(learning_accuracy: float | None) -> bool | None:
    """Whether a learner learned its tasks: at least 0.9 right after learning them; None if not measured.

    What was not learned cannot be forgotten, so the forgetting and the stability gap of a learner that did
    not learn its tasks are not comparable. The bound LEARNED is this package's choice; no paper states one.
    """
    return None if learning_accuracy is None else learning_accuracy >= LEARNED - 1e-9


def stream_average(table: Table) -> float:
    """Average over the stream of the average over the tasks so far: mean_t mean_{i<=t} R_ti."""
    return mean_of_measured(pooled(table).accuracy, "an accuracy on a task learned before")


def backward_transfer(table: Table) -> float:
    """Average the gains of earlier tasks from later ones: mean_{i<T} (R_Ti - R_ii)."""
    compared = _compare(table)
    gain = compared.final - compared.just_learned
    return mean_of_measured(gain[compared.earlier], "an accuracy on an earlier task")


def forgetting(table: Table, include_last: bool = False) -> float:
    """Average the falls from the best accuracy to the last one: mean_{i<T} (max_t R_ti - R_Ti).

    Args:
        include_last: let t reach T, so that no fall is negative; else t < T.
    """
    compared = _compare(table)
    best = np.fmax(compared.just_learned, _best_before(table))
    if include_last:
        best = np.fmax(best, compared.final)
    fall = best - compared.final
    return mean_of_measured(fall[compared.earlier], "an accuracy on an earlier task")


def last_learned(table: Table) -> int:
    """Return the last task after which something was tested."""
    if not np.any(table.learned >= 0):
        raise NotMeasuredError("no test row was made after learning a task; test after one")
    return int(table.learned[-1])


class _Compared(NamedTuple):
    """Accuracies right after learning and at the end, (T,), and the tasks that have both, (T,)."""

    just_learned: Floats
    final: Floats
    tasks: NDArray[np.bool_]
    earlier: NDArray[np.bool_]


def _compare(table: Table) -> _Compared:
    """Return the accuracies of the tasks tested at the end; raise where one lacks its first test."""
    last = last_learned(table)
    final = _after(table, last)
    tasks = (table.tested <= last) & ~np.isnan(final)
    just_learned = table.just_learned
    missing = int(np.isnan(just_learned[tasks]).sum())
    if not tasks.any():
        raise NotMeasuredError(f"no row holds a task's accuracy after task {last}; test after it")
    if missing:
        raise NotMeasuredError(
            f"{missing} of {int(tasks.sum())} tasks were not tested right after they were learned; run "
            "with diagonal_images=200 or every=1"
        )
    return _Compared(just_learned, final, tasks, tasks & (table.tested < last))


def _after(table: Table, learned: int) -> Floats:
    """Return the accuracies (T,) after learning one task, NaN where not measured."""
    found = table.accuracy[table.learned == learned]
    return found[0] if len(found) else np.full(len(table.tested), np.nan)


def _best_before(table: Table) -> Floats:
    """Return the best accuracies (T,) of full tests before the last one, NaN where there is none."""
    earlier = (table.learned >= 0) & (table.learned < table.learned[-1])
    best: Floats = np.fmax.reduce(table.accuracy[earlier], axis=0, initial=np.nan)
    return best
