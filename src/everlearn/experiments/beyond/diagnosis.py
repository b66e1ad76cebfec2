"""What the rows of methods that did not learn say about the reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from everlearn.metrics import just_learned, mean_or_none
from everlearn.report import Group, LoadedRun, Table
from everlearn.report.tables.numbers import MISSING, three_digits

_EARLY = 10  # tasks
_NOTE = (
    "Accuracy on a task right after it, among all classes so far. Loss: mean over the steps of a task. "
    "Norm: mean norm of the head's rows for the classes of a task. Recognised: fraction of the latents "
    "replayed in a task that the head, before it, gives the class with which they are replayed."
)


class _Moment(NamedTuple):
    """A number of a run at the end of a task, which is counted from 1; 0 is the last."""

    title: str
    name: str
    task: int


_MOMENTS = (
    _Moment("accuracy, task 1", "accuracy", 1),
    _Moment(f"task {_EARLY}", "accuracy", _EARLY),
    _Moment("last task", "accuracy", 0),
    _Moment("loss, task 1", "loss", 1),
    _Moment("last task", "loss", 0),
    _Moment("norm, task 1", "new_norm", 1),
    _Moment("last task", "new_norm", 0),
    _Moment(f"recognised, task {_EARLY}", "recognised", _EARLY),
    _Moment("last task", "recognised", 0),
)


def diagnosis_table(groups: Sequence[Group]) -> Table:
    """Return what the runs of each group say about their first, tenth and last task."""
    rows = [[group.label, *(_cell(group, moment) for moment in _MOMENTS)] for group in groups]
    return Table("What the rows say", ["method", *(m.title for m in _MOMENTS)], rows, _NOTE)


def _cell(group: Group, moment: _Moment) -> str:
    found = [_at_task(run, moment.task).get(moment.name) for run in group.runs]
    mean = mean_or_none([value for value in found if value is not None])
    return MISSING if mean is None else three_digits(mean)


def _at_task(run: LoadedRun, task: int) -> dict[str, float | None]:
    """Return accuracy, loss and diagnostics of a task."""
    learned = (task or int(run.stream["tasks"])) - 1
    tests = just_learned(run.rows)
    costs = [row for row in run.costs if row["learned"] == learned]
    return {
        "accuracy": next(iter(tests.accuracy[tests.tasks == learned].tolist()), None),
        "loss": costs[0]["loss"] if costs else None,
        **(costs[0].get("diagnostics", {}) if costs else {}),
    }
