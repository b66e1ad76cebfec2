"""What the report of all experiments opens with: the main figure, and three findings in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from everlearn.experiments.framework.groups import final_accuracy
from everlearn.experiments.framework.shared_trials import EWC, LWF, SI
from everlearn.metrics import table
from everlearn.report import Finding, Group, Lead
from everlearn.report.charts.accuracy_lines import accuracy_lines
from everlearn.report.charts.curves import draw_curves
from everlearn.report.loaded_run import LoadedRun
from everlearn.report.tables.numbers import fraction

_SHOWN = {"dcl-plus": 1, "dcl": 1, "er": 3, EWC.method: 1}  # groups per method in the main figure
_REGULARISATION = (LWF.method, SI.method, EWC.method)
_CAPTION = (
    "Accuracy on the test images of all tasks learned so far. ER replays stored images, EWC regularises "
    "weights; DCL and DCL+ learn to bring images to a canonical form and compare them with exemplars."
)


def make_lead(groups: Sequence[Group], with_findings: bool) -> Lead | None:
    """Draw the main methods that learned the whole stream; None if there are none."""
    length = max(map(_tasks, groups), default=0)
    complete = [group for group in groups if _tasks(group) == length]
    shown = [
        group
        for method, number in _SHOWN.items()
        for group in [group for group in complete if group.method == method][:number]
    ]
    if not shown:
        return None
    curves = draw_curves(shown)
    findings = list(_findings(complete, length)) if with_findings else []
    return Lead(curves.wide, curves.narrow, _CAPTION, findings)


def _findings(groups: Sequence[Group], tasks: int) -> Iterator[Finding]:
    """Yield the findings that the rows support."""
    by_method = {group.method: group for group in reversed(groups)}  # the first of each method
    if "dcl-plus" in by_method:
        yield _kept(by_method["dcl-plus"], tasks)
    if "er" in by_method:
        yield _replay(by_method["er"], tasks)
    regularised = [by_method[method] for method in _REGULARISATION if method in by_method]
    if regularised and all(map(_tested_earlier_tasks, regularised)):
        yield _last_task_only(regularised, tasks)


def _kept(group: Group, tasks: int) -> Finding:
    accuracy = final_accuracy(group)
    images = f"{_percent(accuracy)} of the test images of all {tasks} tasks"
    text = f"{group.label} classifies {images} correctly."
    return Finding(fraction(accuracy), text)


def _percent(share: float) -> str:
    """Format a share so that only a complete one is 100 %."""
    digits = 1 if share == 1 else next(n for n in range(1, 9) if round(100 * share, n) < 100)
    return f"{100 * share:.{digits}f} %"


def _replay(group: Group, tasks: int) -> Finding:
    """Compare the best accuracy of a replay method with its last."""
    (line,) = accuracy_lines([group])
    peak = int(line.mean.argmax())
    best = fraction(float(line.mean[peak]))
    last = fraction(final_accuracy(group))
    text = (
        f"Replay ({group.label} images) reaches {best} after {line.x[peak]} tasks and ends at {last} "
        f"after {tasks}."
    )
    return Finding(f"{best} → {last}", text)


def _last_task_only(groups: Sequence[Group], tasks: int) -> Finding:
    scores = np.array([_last_and_earlier(run) for group in groups for run in group.runs])
    last, earlier = scores.mean(axis=0).tolist()
    names = ", ".join(group.label for group in groups)
    claim = "know only the last task" if last > 0.5 and earlier < 0.05 else "end like this"
    text = (
        f"Regularisation methods ({names}) {claim}: {last:.3f} on task {tasks}, {earlier:.3f} on the "
        f"{tasks - 1} tasks before it."
    )
    return Finding(fraction(earlier), text)


def _tested_earlier_tasks(group: Group) -> bool:
    return all(table(run.rows).accuracy.shape[1] > 1 for run in group.runs)


def _last_and_earlier(run: LoadedRun) -> tuple[float, float]:
    """Return the accuracy on the last task and the mean over all earlier ones, at the end of a run."""
    accuracy = table(run.rows).accuracy[-1]
    return float(accuracy[-1]), float(np.nanmean(accuracy[:-1]))


def _tasks(group: Group) -> int:
    return max(
        int(row["learned"]) + 1 for run in group.runs for row in run.rows if row["kind"] == "test"
    )
