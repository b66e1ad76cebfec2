"""Figure 7: DCL, which predicts the transformation of a shape, against an invariant contrastive net."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlearn.experiments.framework.groups import accuracy_after, accuracy_figures, summary_mean
from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.shared_trials import CONTRASTIVE, DCL, DCL_PLUS, FINE_TUNING
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings
from everlearn.experiments.framework.verdicts import format_values, judge_claim
from everlearn.report import Group
from everlearn.report.experiment import ExperimentResult

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "Equivariance against invariance"
SOURCE = "Figure 7"
CLAIM = (
    "The contrastive net forgets more slowly than fine-tuning and stays above chance; DCL does not "
    "forget."
)
SETTINGS = {
    SMALL: Settings((DCL_PLUS, DCL, CONTRASTIVE, FINE_TUNING), {"tasks": 5, "classes": 15}),
    PAPER: Settings((DCL_PLUS, DCL, CONTRASTIVE, FINE_TUNING), {"tasks": 100, "classes": 1000}),
}
COST = {SMALL: "1 minute", PAPER: "14 minutes"}


def run(runner: Runner) -> None:
    """Run all trials."""
    runner.run_trials(runner.settings(SETTINGS).trials)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Draw accuracy of all methods."""
    settings = results.settings(SETTINGS)
    groups = {group.method: group for group in results.groups(settings.trials)}
    tasks = settings.options["tasks"]
    chance_level = 1 / settings.options["classes"]
    contrastive = _accuracy(groups, "contrastive", tasks)
    fine_tuning = _accuracy(groups, "fine-tuning", tasks)
    dcl = _accuracy(groups, "dcl", tasks)
    why = _learning_accuracy(groups)
    verdicts = [
        judge_claim(
            f"After {tasks} tasks the contrastive net is above fine-tuning",
            format_values({"contrastive": contrastive, "fine-tuning": fine_tuning}),
            _exceeds(contrastive, fine_tuning),
            why,
        ),
        judge_claim(
            f"It is then at more than five times chance level ({chance_level:.4f})",
            format_values({"contrastive": contrastive}),
            _exceeds(contrastive, 5 * chance_level),
            why,
        ),
        judge_claim(
            "DCL is far above the contrastive net",
            format_values({"DCL": dcl, "contrastive": contrastive}),
            _exceeds(dcl, None if contrastive is None else contrastive + 0.1),
        ),
    ]
    drawn = list(groups.values())
    return ExperimentResult(
        accuracy_figures(drawn, "fig7", "Accuracy on all tasks so far."),
        verdicts=verdicts,
        runs=runs_of(drawn),
        missing=results.missing(settings.trials),
    )


def _accuracy(groups: dict[str, Group], method: str, tasks: int) -> float | None:
    return accuracy_after(groups[method], tasks) if method in groups else None


def _learning_accuracy(groups: dict[str, Group]) -> str:
    """Describe how well the contrastive net knows a task that it has just learned."""
    if "contrastive" not in groups:
        return ""
    value = summary_mean(groups["contrastive"], "learning_accuracy")
    if value is None:
        return ""
    return f"on a task just learned the contrastive net has an accuracy of {value:.2f} among all classes"


def _exceeds(value: float | None, bound: float | None) -> bool | None:
    return None if value is None or bound is None else value > bound
