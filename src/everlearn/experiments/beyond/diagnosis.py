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
    rows = [[group.label, *_cells(group)] for group in groups]
    return Table("Diagnostics", ["method", *(moment.title for moment in _MOMENTS)], rows, _NOTE)


def _cells(group: Group) -> list[str]:
    """Format the mean of each number over the runs that measured it."""
    by_moment = zip(*map(_measure, group.runs), strict=True)
    means = [mean_or_none([x for x in values if x is not None]) for values in by_moment]
    return [MISSING if mean is None else three_digits(mean) for mean in means]


def _measure(run: LoadedRun) -> list[float | None]:
    """Return the number of each moment; None where it was not measured."""
    tests = just_learned(run.rows)
    reported = {row["learned"]: row.get("diagnostics", {}) for row in run.costs}
    numbers: dict[str, dict[int, float | None]] = {
        "accuracy": dict(zip(tests.tasks.tolist(), tests.accuracy.tolist(), strict=True)),
        "loss": {row["learned"]: row["loss"] or None for row in run.costs},  # 0 stands for no loss
        **{
            name: {learned: found.get(name) for learned, found in reported.items()}
            for name in ("new_norm", "recognised")
        },
    }
    tasks = int(run.stream["tasks"])
    return [numbers[moment.name].get((moment.task or tasks) - 1) for moment in _MOMENTS]
