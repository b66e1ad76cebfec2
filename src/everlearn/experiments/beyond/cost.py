"""Cost per accuracy: the storage and the training time of each method against its final accuracy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlearn.experiments.framework.groups import final_accuracy
from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.shared_trials import (
    DCL,
    DCL_PLUS,
    ER,
    EWC,
    JOINT,
    LWF,
    MIDDLE_BUFFER,
    SI,
    TABLE_TASKS,
    replay,
)
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings, Trial
from everlearn.experiments.framework.verdicts import unpublished
from everlearn.report import Group
from everlearn.report.charts import Dot, draw_dots
from everlearn.report.experiment import ExperimentResult, Figure

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner

TITLE = "Cost per accuracy"
SOURCE = "ours"
CLAIM = "Storage and training time belong beside accuracy when methods are compared."


def _trials(scale: str) -> tuple[Trial, ...]:
    dark = replay(MIDDLE_BUFFER[scale], "der++")
    return (DCL_PLUS, DCL, *ER[scale], dark, LWF, SI, EWC, JOINT[scale])


SETTINGS = {
    SMALL: Settings(_trials(SMALL)),
    PAPER: Settings(_trials(PAPER)),
}
COST = {
    SMALL: "nothing beyond the other experiments",
    PAPER: "nothing beyond the other experiments",
}
_NOTE = (
    "Storage is everything that a method keeps between tasks: net, images, logits, exemplars. Joint "
    "training renders all tasks again, which counts as no storage. On the H200 up to five runs shared the "
    "GPU, except for ER with 20,000 images: compare seconds with care."
)


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
    sequential = [group for group in groups if group.method != "joint"]
    best = max(sequential, key=_accuracy_per_byte, default=None)
    ours = (
        f"{best.label}, {final_accuracy(best):.4f} with {(best.mean('bytes') or 0) / 1e6:,.0f} MB"
        if best
        else ""
    )
    claim = "Highest accuracy per byte stored, among methods that see one task at a time"
    return ExperimentResult(
        figures,
        verdicts=[unpublished(claim, ours)],
        runs=runs_of(groups),
        missing=results.missing(trials),
        note=_NOTE,
    )


def _accuracy_per_byte(group: Group) -> float:
    return final_accuracy(group) / (group.mean("bytes") or 1)


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
