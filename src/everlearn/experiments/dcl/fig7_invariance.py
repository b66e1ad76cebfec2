"""Figure 7: DCL, which predicts the transformation of a shape, against an invariant contrastive net."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlearn.experiments.framework.groups import (
    accuracy_figures,
    values_after,
)
from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.rule import lead_above, lead_over
from everlearn.experiments.framework.shared_trials import (
    CONTRASTIVE,
    DCL,
    DCL_PLUS,
    FINE_TUNING,
)
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings
from everlearn.experiments.framework.verdicts import format_values, judge_statement
from everlearn.metrics import mean_or_none
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
_TRIALS = (DCL_PLUS, DCL, CONTRASTIVE, FINE_TUNING)
SETTINGS = {
    SMALL: Settings(_TRIALS, {"tasks": 5, "classes": 15}),
    PAPER: Settings(_TRIALS, {"tasks": 100, "classes": 1000}),
}
COST = {SMALL: "1 minute", PAPER: "40 minutes"}
_FAR = 0.1  # difference of accuracies


def run(runner: Runner) -> None:
    """Run all trials."""
    runner.run_trials(runner.settings(SETTINGS).trials)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Draw accuracy of all methods."""
    settings = results.settings(SETTINGS)
    tasks = settings.options["tasks"]
    groups = {group.method: group for group in results.groups(settings.trials, tasks)}
    chance_level = 1 / settings.options["classes"]
    values = {method: values_after(group, tasks) for method, group in groups.items()}
    contrastive = values.get("contrastive", {})
    fine_tuning = values.get("fine-tuning", {})
    dcl = values.get("dcl", {})
    means = {method: mean_or_none(found.values()) for method, found in values.items()}
    why = _learning_accuracy(groups)
    verdicts = [
        judge_statement(
            f"After {tasks} tasks the contrastive net is above fine-tuning",
            format_values({name: means.get(name) for name in ("contrastive", "fine-tuning")}),
            [lead_over(contrastive, fine_tuning)],
            why,
        ),
        judge_statement(
            f"It is then at more than five times chance level ({chance_level:.4f})",
            format_values({"contrastive": means.get("contrastive")}),
            [lead_above(contrastive, 5 * chance_level)],
            why,
        ),
        judge_statement(
            "DCL is far above the contrastive net",
            format_values({"DCL": means.get("dcl"), "contrastive": means.get("contrastive")}),
            [lead_over(dcl, contrastive, _FAR)],
            f"by more than {_FAR}",
        ),
    ]
    drawn = results.groups(settings.trials)
    return ExperimentResult(
        accuracy_figures(drawn, "fig7", "Accuracy on all tasks so far."),
        verdicts=verdicts,
        runs=runs_of(list(groups.values())),
        missing=results.missing(settings.trials),
    )


def _learning_accuracy(groups: dict[str, Group]) -> str:
    """Describe how well the contrastive net knows a task that it has just learned."""
    if "contrastive" not in groups:
        return ""
    value = groups["contrastive"].mean("learning_accuracy")
    if value is None:
        return ""
    return f"on a task just learned the contrastive net has an accuracy of {value:.2f} among all classes"
