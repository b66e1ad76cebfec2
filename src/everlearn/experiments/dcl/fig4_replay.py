"""Figure 4: experience replay with buffers of several sizes."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from everlearn.experiments.framework.groups import accuracy_figures, final_accuracy
from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.shared_trials import DCL_PLUS, ER, FINE_TUNING
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings
from everlearn.experiments.framework.verdicts import format_values, judge_claim
from everlearn.metrics import curve
from everlearn.report import Group
from everlearn.report.experiment import ExperimentResult

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "Replay buffers"
SOURCE = "Figure 4"
CLAIM = (
    "A larger buffer delays the decline of accuracy; even 20,000 images do not last for 500 tasks."
)
SETTINGS = {scale: Settings((DCL_PLUS, *ER[scale], FINE_TUNING)) for scale in (SMALL, PAPER)}
_NEVER = 10**9  # tasks
COST = {SMALL: "2 minutes", PAPER: "22 minutes"}


def run(runner: Runner) -> None:
    """Run all trials."""
    runner.run_trials(runner.settings(SETTINGS).trials)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Draw one curve per buffer size."""
    trials = results.settings(SETTINGS).trials
    groups = results.groups(trials)
    buffers = [group for group in groups if group.method == "er"]
    declines = {group.label: _decline(group) for group in buffers}
    ordered = all(smaller <= larger for smaller, larger in pairwise(declines.values()))
    finite = [f"{label}: {tasks} tasks" for label, tasks in declines.items() if tasks < _NEVER]
    verdicts = [
        judge_claim(
            "With a larger buffer accuracy declines later",
            "; ".join(finite),
            ordered if len(finite) > 1 else None,
            "tasks until 10 % of the best accuracy is lost",
        ),
        judge_claim(
            "Even with the largest buffer it declines before the end",
            format_values({group.label: final_accuracy(group) for group in buffers[-1:]}),
            declines[buffers[-1].label] < _NEVER if buffers else None,
            "accuracy at the end",
        ),
    ]
    caption = "Accuracy on all tasks so far, by the number of images in the buffer."
    return ExperimentResult(
        accuracy_figures(groups, "fig4", caption),
        verdicts=verdicts,
        runs=runs_of(groups),
        missing=results.missing(trials),
    )


def _decline(group: Group) -> int:
    """Return after how many tasks accuracy is below 90 % of its best for good."""
    found = curve(group.runs[0].rows)
    high = np.flatnonzero(found.accuracy >= 0.9 * found.accuracy.max())
    later = found.learned[high[-1] + 1 :]
    return int(later[0]) + 1 if len(later) else _NEVER
