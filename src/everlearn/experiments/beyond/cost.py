"""Cost per accuracy: the storage and the training time of each method against its final accuracy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from everlearn.experiments.beyond import overview
from everlearn.experiments.framework.groups import final_accuracy
from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.shared_trials import TABLE_TASKS
from everlearn.experiments.framework.trial import PAPER, SMALL
from everlearn.experiments.framework.verdicts import unpublished
from everlearn.report import Group
from everlearn.report.charts import Dot, draw_dots
from everlearn.report.experiment import ExperimentResult, Figure

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "Cost per accuracy"
SOURCE = "ours"
CLAIM = "Storage and training time belong beside accuracy when methods are compared."
SETTINGS = overview.SETTINGS
COST = {
    SMALL: "nothing beyond the other experiments",
    PAPER: "nothing beyond the other experiments",
}
_NOTE = (
    "Storage is everything that a method keeps between tasks: net, images, logits, exemplars. Joint "
    "training renders all tasks again, which counts as no storage."
)
_PAPER_NOTE = "Up to fourteen runs shared the GPU, so compare seconds with care."


def run(runner: Runner) -> None:
    """Run all trials."""
    runner.run_trials(runner.settings(SETTINGS).trials)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Draw accuracy against bytes and against seconds."""
    trials = results.settings(SETTINGS).trials
    groups = results.groups(trials, TABLE_TASKS)
    figures = [
        *_scatter(groups, "bytes", "bytes stored"),
        *_scatter(groups, "seconds", "seconds of training"),
    ]
    stored = {
        group.label: (final_accuracy(group), size)
        for group in groups
        if group.method != "joint" and (size := group.mean("bytes"))
    }
    claim = "Highest accuracy per byte stored, among methods that see one task at a time"
    return ExperimentResult(
        figures,
        verdicts=[unpublished(claim, _describe_best(stored))],
        runs=runs_of(groups),
        missing=results.missing(trials),
        note=results.note(_NOTE, _PAPER_NOTE),
    )


def _describe_best(stored: Mapping[str, tuple[float, float]]) -> str:
    """Describe the method with the highest accuracy per byte, of accuracies and bytes by label."""
    if not stored:
        return ""
    label, (accuracy, size) = max(stored.items(), key=lambda item: item[1][0] / item[1][1])
    return f"{label}, {accuracy:.4f} with {size / 1e6:,.0f} MB"


def _scatter(groups: list[Group], name: str, label: str) -> list[Figure]:
    """Draw final accuracy against one cost; no figure where it was not measured."""
    costs = {group.label: group.mean(name) for group in groups}
    dots = [
        Dot(group.label, group.method, cost, final_accuracy(group))
        for group in groups
        if (cost := costs[group.label])
    ]
    if not dots:
        return []
    svg = draw_dots(dots, f"cost-{name}", label, "accuracy", f"accuracy against {label}")
    return [Figure(svg, f"Accuracy on all tasks after {TABLE_TASKS} against {label}.")]
