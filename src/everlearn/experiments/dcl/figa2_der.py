"""Figure A2: dark experience replay beside plain replay with a buffer of the same size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlearn.experiments.framework.groups import (
    accuracy_after,
    accuracy_figures,
    values_after,
)
from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.rule import lead_over
from everlearn.experiments.framework.shared_trials import (
    DCL_PLUS,
    MIDDLE_BUFFER,
    TABLE_TASKS,
    replay,
)
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings, Trial
from everlearn.experiments.framework.verdicts import (
    compare_number,
    format_values,
    judge_statement,
)
from everlearn.report.experiment import ExperimentResult

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "Dark experience replay"
SOURCE = "Figure A2"
CLAIM = "DER with 5,000 images is above replay with as many, at about 40 % after 200 tasks."


def _trials(size: int) -> tuple[Trial, ...]:
    return (DCL_PLUS, replay(size), replay(size, "der++"))


SETTINGS = {
    SMALL: Settings(_trials(MIDDLE_BUFFER[SMALL]), {"tasks": 5}),
    PAPER: Settings(_trials(MIDDLE_BUFFER[PAPER]), {"tasks": TABLE_TASKS}),
}
COST = {SMALL: "2 minutes", PAPER: "45 minutes"}
_NOTE = (
    "Settings were chosen by eight trials each on another seed: learning rate, weight of the distance, and "
    "whether logits are stored at first sight or when a task ends (everlearn tune)."
)


def run(runner: Runner) -> None:
    """Run all trials."""
    runner.run_trials(runner.settings(SETTINGS).trials)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Draw accuracy of both, and compare them after so many tasks."""
    settings = results.settings(SETTINGS)
    tasks = settings.options["tasks"]
    groups = results.groups(settings.trials, TABLE_TASKS)
    found = {group.method: values_after(group, tasks) for group in groups}
    dark = found.get("der++", {})
    verdicts = [
        judge_statement(
            f"After {tasks} tasks DER++ is above replay",
            format_values({group.label: accuracy_after(group, tasks) for group in groups}),
            [lead_over(dark, found.get("er", {}))],
        ),
        compare_number(f"Accuracy of DER++ after {tasks} tasks", 0.4, dark, digits=1),
    ]
    return ExperimentResult(
        accuracy_figures(groups, "figA2", "Accuracy on all tasks so far."),
        verdicts=verdicts,
        runs=runs_of(groups),
        missing=results.missing(settings.trials),
        note=_NOTE,
    )
