"""Figure 4: experience replay with buffers of several sizes."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from everlearn.experiments.framework.groups import (
    accuracy_figures,
    final_accuracy,
    values_by_title,
)
from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.rule import Values, lead_above, lead_over
from everlearn.experiments.framework.shared_trials import (
    BUFFERS,
    DCL_PLUS,
    FINE_TUNING,
    TABLE_BUFFERS,
    TABLE_TASKS,
    once,
    replay,
)
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings, Trial
from everlearn.experiments.framework.verdicts import format_values, judge_statement
from everlearn.report import LoadedRun
from everlearn.report.experiment import ExperimentResult
from everlearn.report.tables.groups import accuracy_by_tasks

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "Replay buffers"
SOURCE = "Figure 4"
CLAIM = (
    "A larger buffer delays the decline of accuracy; even 20,000 images do not last for 500 tasks."
)


def _buffer(size: int, scale: str) -> Trial:
    """Return replay with a buffer size; sizes that the main table leaves out learn once."""
    in_table = size in TABLE_BUFFERS[scale]
    return replay(size) if in_table else once(replay(size))


SETTINGS = {
    scale: Settings((DCL_PLUS, *(_buffer(size, scale) for size in BUFFERS[scale]), FINE_TUNING))
    for scale in (SMALL, PAPER)
}
COST = {SMALL: "2 minutes", PAPER: "1 hour"}
_KEPT = 0.9  # of the best accuracy; below it accuracy has declined


def run(runner: Runner) -> None:
    """Run all trials."""
    runner.run_trials(runner.settings(SETTINGS).trials)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Draw one curve per buffer size."""
    trials = results.settings(SETTINGS).trials
    groups = results.groups(trials)
    buffers = [trial for trial in trials if trial.method == "er"]
    repeated = [trial for trial in buffers if len(trial.seeds) > 1]
    declines = values_by_title(
        repeated,
        {
            group.label: {run.seed: _decline(run) for run in group.runs}
            for group in results.groups(repeated, TABLE_TASKS)
        },
    )
    largest = results.groups(buffers[-1:])
    lost = [{run.seed: _lost(run) for run in group.runs} for group in largest]
    verdicts = [
        judge_statement(
            "With a larger buffer accuracy declines later",
            "; ".join(
                f"{title}: {_name_tasks(found)}" for title, found in declines.items() if found
            ),
            [lead_over(larger, smaller) for smaller, larger in pairwise(declines.values())],
            f"of the first {TABLE_TASKS} tasks, those until 10 % of the best accuracy is lost for good, by "
            "seed; where it never is, one task more than there are is counted",
            [f"{larger} over {smaller}" for smaller, larger in pairwise(declines)],
        ),
        judge_statement(
            "Even with the largest buffer it declines before the end",
            format_values({group.label: final_accuracy(group) for group in largest}),
            [lead_above(values, 0.0) for values in lost],
            "accuracy at the end; declined: below 90 % of the best",
        ),
    ]
    caption = "Accuracy on all tasks so far, by the number of images in the buffer."
    return ExperimentResult(
        accuracy_figures(groups, "fig4", caption),
        verdicts=verdicts,
        runs=runs_of(results.groups(trials, TABLE_TASKS)),
        missing=results.missing(trials),
    )


def _name_tasks(declines: Values) -> str:
    """Return after how many tasks each seed declines, such as "180, > 200"."""
    shown = (f"> {TABLE_TASKS}" if n > TABLE_TASKS else f"{n:.0f}" for n in declines.values())
    return ", ".join(shown)


def _decline(run: LoadedRun) -> int:
    """Return after how many tasks accuracy is below 90 % of its best for good."""
    accuracies = accuracy_by_tasks(run)
    best = max(accuracies.values())
    kept = max(tasks for tasks, accuracy in accuracies.items() if accuracy >= _KEPT * best)
    return min((tasks for tasks in accuracies if tasks > kept), default=max(accuracies) + 1)


def _lost(run: LoadedRun) -> float:
    """Return by how much the last accuracy is below 90 % of the best."""
    accuracies = accuracy_by_tasks(run)
    return _KEPT * max(accuracies.values()) - accuracies[max(accuracies)]
