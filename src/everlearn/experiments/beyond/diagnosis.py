"""Diagnostics of methods that did not learn: accuracy, loss and norms of their first and last tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from everlearn.metrics import just_learned, mean_or_none
from everlearn.report import Group, LoadedRun, Table
from everlearn.report.tables.numbers import MISSING, three_digits

_EARLY = 10  # tasks
_NOTE = (
    "Accuracy on a task right after it, among all classes so far. Loss: mean over the steps of a "
    "task; those of different methods do not compare, because they have different terms. Norm: mean "
    "norm of the head's rows for the classes of a task. Recognised: fraction of the latents replayed "
    "in a task that the head, before it, gives the class with which they are replayed."
)


class _Moment(NamedTuple):
    """A number of a run at the end of a task, which is counted from 1; None is the last."""

    title: str
    name: str
    task: int | None


_MOMENTS = (
    _Moment("accuracy, task 1", "accuracy", 1),
    _Moment(f"accuracy, task {_EARLY}", "accuracy", _EARLY),
    _Moment("accuracy, last task", "accuracy", None),
    _Moment("loss, task 1", "loss", 1),
    _Moment("loss, last task", "loss", None),
    _Moment("norm, task 1", "new_norm", 1),
    _Moment("norm, last task", "new_norm", None),
    _Moment(f"recognised, task {_EARLY}", "recognised", _EARLY),
    _Moment("recognised, last task", "recognised", None),
)


def diagnosis_table(groups: Sequence[Group]) -> Table:
    """Return numbers of the first, the tenth and the last task of each group."""
    rows = [[group.label, *(_cell(group, moment) for moment in _MOMENTS)] for group in groups]
    return Table("Diagnostics", ["method", *(m.title for m in _MOMENTS)], rows, _NOTE)


def _cell(group: Group, moment: _Moment) -> str:
    found = [_at_task(run, moment.task).get(moment.name) for run in group.runs]
    mean = mean_or_none([value for value in found if value is not None])
    return MISSING if mean is None else three_digits(mean)


def _at_task(run: LoadedRun, task: int | None) -> dict[str, float | None]:
    """Return accuracy, loss and diagnostics of a task."""
    learned = (task or int(run.stream["tasks"])) - 1
    tests = just_learned(run.rows)
    found: dict[str, float | None] = {}
    for accuracy in tests.accuracy[tests.tasks == learned].tolist():
        found["accuracy"] = accuracy
    for row in run.costs:
        if row["learned"] == learned:  # methods without a loss record 0
            found |= {"loss": row["loss"] or None, **row.get("diagnostics", {})}
    return found
