"""Figure A2: dark experience replay beside plain replay with a buffer of the same size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlearn.experiments.framework.groups import (
    accuracy_after,
    accuracy_figures,
    mean_or_none,
    values_after,
)
from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.rule import Values, lead_over
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
from everlearn.metrics import curve
from everlearn.report import Group
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
_BEST = "the best of all settings, chosen by the same numbers, which flatters it"
_NOTE = (
    "Late: images and logits are stored when a task ends, as in the package that the paper used; "
    "otherwise when an image is first seen, as the method defines it. Learning rates are those of Adam at "
    "the start of a task."
)


def run(runner: Runner) -> None:
    """Run all trials."""
    runner.run_trials(runner.settings(SETTINGS).trials)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Draw accuracy of all variants."""
    settings = results.settings(SETTINGS)
    tasks = settings.options["tasks"]
    groups = results.groups(settings.trials, TABLE_TASKS)
    best = _best(groups, "der++", tasks)
    verdicts = [
        judge_statement(
            f"After {tasks} tasks the best DER++ is above replay",
            format_values({group.label: accuracy_after(group, tasks) for group in groups}),
            [lead_over(best, _best(groups, "er", tasks))],
            _last_lead(groups),
        ),
        compare_number(
            f"Accuracy of the best DER++ after {tasks} tasks", 0.4, best, _BEST, digits=1
        ),
    ]
    return ExperimentResult(
        accuracy_figures(groups, "figA2", "Accuracy on all tasks so far."),
        verdicts=verdicts,
        runs=runs_of(groups),
        missing=results.missing(settings.trials),
        note=_NOTE,
    )


def _last_lead(groups: list[Group]) -> str:
    """Describe until which task some variant of DER++ is above replay."""
    curves = [(group.method, curve(group.runs[0].rows)) for group in groups]
    replays = [found for method, found in curves if method == "er"]
    variants = [found for method, found in curves if method == "der++"]
    if not replays or not variants:
        return ""
    reference = dict(zip(replays[0].learned.tolist(), replays[0].accuracy.tolist(), strict=True))
    leads = [
        learned + 1
        for found in variants
        for learned, accuracy in zip(found.learned.tolist(), found.accuracy.tolist(), strict=True)
        if accuracy > reference.get(learned, 1.0)
    ]
    return f"a variant is above replay up to {max(leads)} tasks" if leads else "no variant ever is"


def _best(groups: list[Group], method: str, tasks: int) -> Values:
    """Return the accuracies by seed of the group of a method with the highest mean; none without rows."""
    found = [values_after(group, tasks) for group in groups if group.method == method]
    return max(filter(None, found), key=lambda values: mean_or_none(values) or 0.0, default={})
